package peer;

import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.WindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * Queries 5 and 7 of snapline/workload/nexmark/dashboards.py, with Flink's own sliding windows: of every
 * window the auctions with the most bids, or with the highest one.
 */
final class Sliding implements Serializable {
  private static final TypeInformation<Best> BEST = TypeInformation.of(Best.class);

  private final boolean counts; // else the highest bid counts
  private final Duration size;
  private final Duration every;

  Sliding(boolean counts, long sizeMs, long everyMs) {
    this.counts = counts;
    size = Duration.ofMillis(sizeMs);
    every = Duration.ofMillis(everyMs);
  }

  DataStream<Best> of(DataStream<Bid> bids) {
    return bids.keyBy(bid -> bid.auction, Types.LONG)
        .window(SlidingEventTimeWindows.of(size, every))
        .aggregate(new Value(counts), new OfWindow(), Types.LONG, BEST)
        .keyBy(best -> best.window, Types.LONG)
        .window(TumblingEventTimeWindows.of(every))
        .process(new OfAll(), BEST)
        .map(new Through())
        .returns(BEST);
  }

  private static final class Value implements AggregateFunction<Bid, Long, Long> {
    private final boolean counts;

    Value(boolean counts) {
      this.counts = counts;
    }

    @Override
    public Long createAccumulator() {
      return 0L;
    }

    @Override
    public Long add(Bid bid, Long before) {
      return counts ? before + 1 : Math.max(before, bid.price);
    }

    @Override
    public Long getResult(Long value) {
      return value;
    }

    @Override
    public Long merge(Long one, Long other) {
      return counts ? one + other : Math.max(one, other);
    }
  }

  private static final class OfWindow implements WindowFunction<Long, Best, Long, TimeWindow> {
    @Override
    public void apply(Long auction, TimeWindow window, Iterable<Long> values, Collector<Best> out) {
      Best best = new Best();
      best.window = window.getStart();
      best.auction = auction;
      best.value = values.iterator().next();
      best.time = window.maxTimestamp();
      out.collect(best);
    }
  }

  /** Of all auctions of a window those with the largest value. */
  private static final class OfAll extends ProcessWindowFunction<Best, Best, Long, TimeWindow> {
    @Override
    public void process(Long key, Context context, Iterable<Best> all, Collector<Best> out) {
      List<Best> best = new ArrayList<>();
      for (Best one : all) {
        if (!best.isEmpty() && one.value > best.get(0).value) {
          best.clear();
        }
        if (best.isEmpty() || one.value == best.get(0).value) {
          best.add(one);
        }
      }
      best.forEach(out::collect);
    }
  }

  /** Hears of checkpoints, which functions of windows do not. */
  private static final class Through implements MapFunction<Best, Best>, Queries.Listening {
    @Override
    public Best map(Best best) {
      return best;
    }
  }
}
