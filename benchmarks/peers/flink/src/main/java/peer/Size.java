package peer;

import java.io.Serializable;

/** The size of the input: {@code Params} of snapline/workload/base.py, and what a query adds to it. */
record Size(long seed, int partitions, long records, long durationMs, long disorderMs, long bidders)
    implements Serializable {
  static final int AUCTIONS_PER_PERSON = 3;

  /** Persons per partition; {@code records} is the number of auctions, and of bids. */
  long persons() {
    return Math.max(records / AUCTIONS_PER_PERSON, 1);
  }
}
