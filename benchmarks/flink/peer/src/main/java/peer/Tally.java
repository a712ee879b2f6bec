package peer;

import java.io.Serializable;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;

/** The sink: counts what comes, adds up a checksum, and in a paced run takes the age of every record. */
final class Tally<T> implements Sink<T> {
  /** What a record adds to the checksum, or its time. */
  interface Of<T> extends Serializable {
    long of(T record);
  }

  /** What one writer has counted; read when the job is over. */
  static final class Writer<T> implements SinkWriter<T> {
    private static final int BIN_NS = 10_000;
    private final Tally<T> tally;
    long count;
    long checksum;
    final long[] ages;

    Writer(Tally<T> tally) {
      this.tally = tally;
      ages = new long[tally.paced ? 1_000_000 : 0]; // ten seconds; what is older is in the last bin
    }

    @Override
    public void write(T record, Context context) {
      count++;
      checksum += tally.share.of(record);
      if (tally.paced) {
        long time = tally.time.of(record);
        if (time >= tally.fromMs) {
          long bin = Math.max(Pace.ageNs(time), 0) / BIN_NS;
          ages[(int) Math.min(bin, ages.length - 1)]++;
        }
      }
    }

    @Override
    public void flush(boolean endOfInput) {}

    @Override
    public void close() {}
  }

  static final List<Writer<?>> WRITERS = new CopyOnWriteArrayList<>();

  private final Of<T> share;
  private final Of<T> time;
  private final boolean paced;
  private final long fromMs;

  /** In a paced run the ages of records from {@code fromMs} on count. */
  Tally(Of<T> share, Of<T> time, boolean paced, long fromMs) {
    this.share = share;
    this.time = time;
    this.paced = paced;
    this.fromMs = fromMs;
  }

  @Override
  public SinkWriter<T> createWriter(WriterInitContext context) {
    Writer<T> writer = new Writer<>(this);
    WRITERS.add(writer);
    return writer;
  }

  static long count() {
    return WRITERS.stream().mapToLong(writer -> writer.count).sum();
  }

  static long checksum() {
    return WRITERS.stream().mapToLong(writer -> writer.checksum).sum();
  }

  /** The age in milliseconds that this share of the records does not exceed. */
  static double percentileMs(double share) {
    long all = 0;
    for (Writer<?> writer : WRITERS) {
      for (long some : writer.ages) {
        all += some;
      }
    }
    long seen = 0;
    for (int bin = 0; ; bin++) {
      for (Writer<?> writer : WRITERS) {
        seen += writer.ages[bin];
      }
      if (seen >= share * all) {
        return (bin + 1) * Writer.BIN_NS / 1e6;
      }
    }
  }
}
