package peer;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** How far the sources are, and when a record of a paced run is due. One run a process. */
final class Pace {
  /** The records that each reader has made. */
  static final List<AtomicLong> READERS = new CopyOnWriteArrayList<>();

  private static final long HEAD_START_NS = 500_000_000L;
  private static final AtomicLong ORIGIN_NS = new AtomicLong();

  private Pace() {}

  /** When input began to be due: a moment after the first source asked, so that no source is late. */
  static long originNs() {
    long origin = ORIGIN_NS.get();
    if (origin == 0) {
      ORIGIN_NS.compareAndSet(0, System.nanoTime() + HEAD_START_NS);
      origin = ORIGIN_NS.get();
    }
    return origin;
  }

  /** Whether the first record is due. */
  static boolean begun() {
    return ORIGIN_NS.get() != 0 && System.nanoTime() >= ORIGIN_NS.get();
  }

  /** Waits until a record with this time is due. */
  static void await(long timeMs) {
    long due = originNs() + timeMs * 1_000_000L;
    for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }

  /** How long ago a record with this time was due. */
  static long ageNs(long timeMs) {
    return System.nanoTime() - originNs() - timeMs * 1_000_000L;
  }

  static long total() {
    return READERS.stream().mapToLong(AtomicLong::get).sum();
  }

  static long furthest() {
    return READERS.stream().mapToLong(AtomicLong::get).max().orElse(0);
  }
}
