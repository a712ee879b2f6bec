package peer;

import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** One query on Flink, in this process; prints one line of JSON. Or: --check golden.txt. */
public final class Main {
  /** The share of the input that is read before the clock starts. */
  private static final double WARM_UP = 0.4;

  private Main() {}

  public static void main(String[] words) throws Exception {
    if (words.length == 2 && words[0].equals("--check")) {
      System.out.println(Check.all(Path.of(words[1])) + " records agree");
      return;
    }
    Options options = Options.parse(words);
    StreamExecutionEnvironment flink = environment(options);
    long records = new Queries(flink, options).add(options.query());
    CompletableFuture<JobExecutionResult> over =
        flink.executeAsync(options.query()).getJobExecutionResult();
    Spent spent = options.paced() ? pace(over, options) : measure(over, records, options);
    over.get();
    if (options.paced()) {
      spent = spent.toNow();
    }
    double p50 = options.paced() ? Tally.percentileMs(0.50) : 0;
    double p99 = options.paced() ? Tally.percentileMs(0.99) : 0;
    System.out.printf(
        Locale.ROOT,
        "{\"records\": %d, \"count\": %d, \"checksum\": %s, \"rate\": %.1f, \"p50_ms\": %.3f,"
            + " \"p99_ms\": %.3f, \"checkpoints\": %d, \"cpu_s\": %.3f, \"seconds\": %.3f,"
            + " \"counted\": %d, \"warm_cpu_s\": %.3f, \"warm_seconds\": %.3f, \"rss\": %d}%n",
        records,
        Tally.count(),
        Long.toUnsignedString(Tally.checksum()),
        spent.records() / spent.seconds(),
        p50,
        p99,
        Queries.CHECKPOINTS.size(),
        spent.cpuS(),
        spent.seconds(),
        spent.records(),
        spent.warmCpuS(),
        spent.warmSeconds(),
        Usage.peakRss());
    System.exit(0);
  }

  private static StreamExecutionEnvironment environment(Options options) {
    int partitions = options.size().partitions();
    Configuration settings = new Configuration();
    settings.setString("taskmanager.numberOfTaskSlots", String.valueOf(partitions));
    settings.setString("taskmanager.memory.network.min", "128m");
    settings.setString("taskmanager.memory.network.max", "128m");
    settings.setString("rest.bind-address", "127.0.0.1");
    settings.setString("rest.address", "127.0.0.1");
    settings.setString("rest.port", "0");
    settings.setString("restart-strategy.type", "none");
    settings.setString("state.backend.type", "hashmap");
    settings.setString("execution.checkpointing.storage", "filesystem");
    settings.setString("execution.checkpointing.dir", Path.of(options.directory()).toUri().toString());
    settings.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
    settings.setString("execution.checkpointing.interval", options.checkpointMs() + " ms");
    settings.setString("pipeline.generic-types", "false"); // no slow serializer by accident
    settings.setString("pipeline.object-reuse", String.valueOf(options.reuse()));
    StreamExecutionEnvironment flink =
        StreamExecutionEnvironment.createLocalEnvironment(partitions, settings);
    flink.setBufferTimeout(options.bufferMs());
    return flink;
  }

  /** What was spent from the end of the warm-up until the first source is at its end. */
  private static Spent measure(Future<?> over, long records, Options options) throws Exception {
    while (Pace.total() < records * WARM_UP) {
      pause(over);
    }
    Spent spent = Spent.fromNow();
    while (Pace.furthest() < records / options.size().partitions()) {
      pause(over);
    }
    return spent.toNow();
  }

  /** What is spent from the first record due on, and from the end of the warm-up on. */
  private static Spent pace(Future<?> over, Options options) throws Exception {
    while (!Pace.begun()) {
      pause(over);
    }
    Spent spent = Spent.fromNow();
    while (Pace.ageNs(options.warmMs()) < 0) {
      pause(over);
    }
    return spent.warm();
  }

  /** A short wait for a job that must not be over yet. */
  private static void pause(Future<?> over) throws Exception {
    if (over.isDone()) {
      over.get();
      throw new IllegalStateException("the job ended before it had read its input");
    }
    Thread.sleep(1);
  }
}
