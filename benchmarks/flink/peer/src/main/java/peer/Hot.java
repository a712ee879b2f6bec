package peer;

import java.io.Serializable;

/** A field of which some records name the hot key: {@code heated} of snapline/workload/generated.py. */
final class Hot implements Serializable {
  private final Size size;
  private final long count;
  private final Draw heat;
  private final long partition;

  /** Each partition will have {@code count} keys; the latest at a time becomes the hot one. */
  Hot(Size size, String field, int partition, long count) {
    this.size = size;
    this.count = count;
    heat = new Draw(size.seed(), field + ".heat", partition);
    this.partition = new Draw(size.seed(), field + ".hot", 0).at(0, size.partitions());
  }

  /** The key, or the hot one instead. */
  long instead(long key, long offset) {
    if (size.hot() == 0 || heat.at(offset, 100) >= size.hot()) {
      return key;
    }
    long sinceMs = 0;
    if (size.hotMs() != 0) {
      long dueMs = offset * size.durationMs() / size.records();
      sinceMs = dueMs - dueMs % size.hotMs();
    }
    return sinceMs * count / size.durationMs() * size.partitions() + partition;
  }
}
