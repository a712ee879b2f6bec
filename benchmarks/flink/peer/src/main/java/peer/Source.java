package peer;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.connector.datagen.source.GeneratorFunction;

/** A stream as a function of the index over all partitions: partition after partition. */
abstract class Source<T> implements GeneratorFunction<Long, T> {
  final Size size;
  private final long perPartition;
  private final boolean paced;
  private transient Model[] models;
  private transient AtomicLong made;
  private transient long count;

  Source(Size size, long perPartition, boolean paced) {
    this.size = size;
    this.perPartition = perPartition;
    this.paced = paced;
  }

  abstract T make(Model model, long offset);

  abstract long time(T made);

  long records() {
    return size.partitions() * perPartition;
  }

  @Override
  public void open(SourceReaderContext context) {
    models = new Model[size.partitions()];
    for (int partition = 0; partition < models.length; partition++) {
      models[partition] = new Model(size, partition);
    }
    made = new AtomicLong();
    Pace.READERS.add(made);
  }

  @Override
  public T map(Long index) {
    T record = make(models[(int) (index / perPartition)], index % perPartition);
    if (paced) {
      Pace.await(time(record));
    }
    made.lazySet(++count);
    return record;
  }

  /** Bids. */
  static final class Bids extends Source<Bid> {
    Bids(Size size, boolean paced) {
      super(size, size.records(), paced);
    }

    @Override
    Bid make(Model model, long offset) {
      return model.bid(offset);
    }

    @Override
    long time(Bid made) {
      return made.time;
    }
  }

  /** Persons, each followed by as many auctions as come for one person: both streams advance together. */
  static final class Events extends Source<Event> {
    private static final int GROUP = Size.AUCTIONS_PER_PERSON + 1;

    Events(Size size, boolean paced) {
      super(size, size.records() + size.persons(), paced);
      if (size.records() % Size.AUCTIONS_PER_PERSON != 0) {
        throw new IllegalArgumentException("records must be a multiple of auctions per person");
      }
    }

    @Override
    Event make(Model model, long offset) {
      long group = offset / GROUP;
      long member = offset % GROUP;
      Event event = new Event();
      if (member == 0) {
        event.person = model.person(group);
      } else {
        event.auction = model.auction(group * Size.AUCTIONS_PER_PERSON + member - 1);
      }
      return event;
    }

    @Override
    long time(Event made) {
      return made.time();
    }
  }
}
