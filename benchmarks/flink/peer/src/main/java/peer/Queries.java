package peer;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;

/**
 * The four queries of snapline/workload/nexmark/queries.py, and two of dashboards.py ({@link Sliding}). A
 * window is part of the key, so records of two windows may interleave; its state is dropped when the
 * watermark has passed its end.
 */
final class Queries {
  /** The checkpoints that the job has completed. */
  static final Set<Long> CHECKPOINTS = ConcurrentHashMap.newKeySet();

  private static final int KEY_BITS = 40;
  private static final Set<String> LOCAL_STATES = Set.of("OR", "ID", "CA");

  /** A function that hears of every completed checkpoint. */
  interface Listening extends CheckpointListener {
    @Override
    default void notifyCheckpointComplete(long checkpoint) {
      CHECKPOINTS.add(checkpoint);
    }
  }

  private final StreamExecutionEnvironment flink;
  private final Options options;
  private final Size size;

  Queries(StreamExecutionEnvironment flink, Options options) {
    this.flink = flink;
    this.options = options;
    this.size = options.size();
  }

  /** Adds a query to the environment; returns the number of records of all its sources. */
  long add(String query) {
    return switch (query) {
      case "q1" -> q1();
      case "q3" -> join(true);
      case "q8" -> join(false);
      case "q5" -> sliding(true);
      case "q7" -> sliding(false);
      case "q12" -> q12();
      default -> throw new IllegalArgumentException("no query " + query);
    };
  }

  private long q1() {
    Source.Bids source = new Source.Bids(size, options.paced());
    source(source, WatermarkStrategy.noWatermarks(), Bid.class)
        .map(new InEuros())
        .sinkTo(tally((Bid it) -> it.id + it.price, it -> it.time));
    return source.records();
  }

  private long q12() {
    long windowMs = options.windowMs();
    Source.Bids source = new Source.Bids(size, options.paced());
    source(source, inOrder(), Bid.class)
        .keyBy(bid -> key(bid.bidder, bid.time, windowMs), Types.LONG)
        .process(new RunningCount(windowMs), TypeInformation.of(Count.class))
        .sinkTo(tally((Count it) -> it.count, it -> it.time));
    return source.records();
  }

  /** q5 counts bids, q7 looks for the highest, in windows that slide. */
  private long sliding(boolean counts) {
    Source.Bids source = new Source.Bids(size, options.paced());
    DataStream<Bid> bids = source(source, inOrder(), Bid.class);
    new Sliding(counts, options.windowMs(), options.everyMs())
        .of(bids)
        .sinkTo(tally((Best it) -> pair(it.window, it.auction) + it.value, it -> it.time));
    return source.records();
  }

  /** q3 joins some persons with some auctions for ever, q8 all of them within windows. */
  private long join(boolean filtered) {
    long windowMs = filtered ? 0 : options.windowMs();
    Source.Events source = new Source.Events(size, options.paced());
    WatermarkStrategy<Event> times =
        filtered
            ? WatermarkStrategy.noWatermarks()
            : WatermarkStrategy.<Event>forBoundedOutOfOrderness(Duration.ofMillis(size.disorderMs()))
                .withTimestampAssigner((event, ignored) -> event.time());
    DataStream<Event> events = source(source, times, Event.class);
    DataStream<Person> persons =
        events.flatMap((event, out) -> collect(event.person, out), TypeInformation.of(Person.class));
    DataStream<Auction> auctions =
        events.flatMap((event, out) -> collect(event.auction, out), TypeInformation.of(Auction.class));
    if (filtered) {
      persons = persons.filter(person -> LOCAL_STATES.contains(person.state));
      auctions = auctions.filter(auction -> auction.category == Model.FIRST_CATEGORY);
    }
    persons
        .keyBy(person -> key(person.person, person.time, windowMs), Types.LONG)
        .connect(auctions.keyBy(lot -> key(lot.seller, lot.time, windowMs), Types.LONG))
        .process(new Join(windowMs), TypeInformation.of(Sale.class))
        .sinkTo(tally((Sale it) -> pair(it.person, it.auction), it -> it.time));
    return source.records();
  }

  private <T> SingleOutputStreamOperator<T> source(
      Source<T> source, WatermarkStrategy<T> times, Class<T> type) {
    TypeInformation<T> info = TypeInformation.of(type);
    DataGeneratorSource<T> generator = new DataGeneratorSource<>(source, source.records(), info);
    return flink.fromSource(generator, times, "source", info);
  }

  private static WatermarkStrategy<Bid> inOrder() {
    return WatermarkStrategy.<Bid>forBoundedOutOfOrderness(Duration.ZERO)
        .withTimestampAssigner((bid, ignored) -> bid.time);
  }

  private <T> Tally<T> tally(Tally.Of<T> share, Tally.Of<T> time) {
    return new Tally<>(share, time, options.paced(), options.warmMs());
  }

  private static <T> void collect(T record, Collector<T> out) {
    if (record != null) {
      out.collect(record);
    }
  }

  /** What a pair adds to the checksum: {@code pair_hash} of benchmarks/common/checks.py. */
  private static long pair(long one, long other) {
    return (one * 0x9E3779B97F4A7C15L) ^ (other * 0xD1B54A32D192ED03L);
  }

  private static long key(long id, long time, long windowMs) {
    return windowMs == 0 ? id : (time / windowMs << KEY_BITS) | id;
  }

  private static long lastMs(long time, long windowMs) {
    return time - time % windowMs + windowMs - 1;
  }

  private static final class InEuros implements MapFunction<Bid, Bid>, Listening {
    @Override
    public Bid map(Bid bid) {
      Bid converted = new Bid();
      converted.id = bid.id;
      converted.time = bid.time;
      converted.auction = bid.auction;
      converted.bidder = bid.bidder;
      converted.price = bid.price * 908 / 1000;
      return converted;
    }
  }

  private static final class RunningCount extends KeyedProcessFunction<Long, Bid, Count>
      implements Listening {
    private final long windowMs;
    private transient ValueState<Long> counted;

    RunningCount(long windowMs) {
      this.windowMs = windowMs;
    }

    @Override
    public void open(OpenContext context) {
      counted = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
    }

    @Override
    public void processElement(Bid bid, Context context, Collector<Count> out) throws Exception {
      Long before = counted.value();
      if (before == null) {
        context.timerService().registerEventTimeTimer(lastMs(bid.time, windowMs));
      }
      Count count = new Count();
      count.bidder = bid.bidder;
      count.window = bid.time - bid.time % windowMs;
      count.count = before == null ? 1 : before + 1;
      count.time = bid.time;
      counted.update(count.count);
      out.collect(count);
    }

    @Override
    public void onTimer(long time, OnTimerContext context, Collector<Count> out) {
      counted.clear();
    }
  }

  private static final class Join extends KeyedCoProcessFunction<Long, Person, Auction, Sale>
      implements Listening {
    private final long windowMs; // 0: one window, for ever
    private transient ValueState<Person> seller;
    private transient ListState<Auction> lots;

    Join(long windowMs) {
      this.windowMs = windowMs;
    }

    @Override
    public void open(OpenContext context) {
      seller = getRuntimeContext().getState(new ValueStateDescriptor<>("seller", Person.class));
      lots = getRuntimeContext().getListState(new ListStateDescriptor<>("lots", Auction.class));
    }

    @Override
    public void processElement1(Person person, Context context, Collector<Sale> out)
        throws Exception {
      forgetLater(context, person.time);
      seller.update(person);
      for (Auction lot : lots.get()) {
        out.collect(sale(person, lot));
      }
    }

    @Override
    public void processElement2(Auction lot, Context context, Collector<Sale> out)
        throws Exception {
      lots.add(lot);
      Person person = seller.value();
      if (person == null) {
        forgetLater(context, lot.time);
      } else {
        out.collect(sale(person, lot));
      }
    }

    @Override
    public void onTimer(long time, OnTimerContext context, Collector<Sale> out) {
      seller.clear();
      lots.clear();
    }

    private void forgetLater(Context context, long time) {
      if (windowMs > 0) {
        context.timerService().registerEventTimeTimer(lastMs(time, windowMs));
      }
    }

    private static Sale sale(Person person, Auction lot) {
      Sale sale = new Sale();
      sale.time = Math.max(person.time, lot.time);
      sale.auction = lot.auction;
      sale.category = lot.category;
      sale.reserve = lot.reserve;
      sale.person = person.person;
      sale.name = person.name;
      sale.city = person.city;
      sale.state = person.state;
      return sale;
    }
  }
}
