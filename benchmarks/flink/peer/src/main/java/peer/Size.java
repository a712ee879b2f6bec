package peer;

import java.io.Serializable;

/**
 * The size of the input: {@code Params} of snapline/workload/base.py in its full form, and what a query
 * adds to it.
 */
record Size(
    long seed,
    int partitions,
    long records,
    long durationMs,
    long disorderMs,
    long hot,
    long hotMs)
    implements Serializable {
  static final int AUCTIONS_PER_PERSON = 3;
  private static final int BIDS_PER_PERSON = 46;

  /** Persons per partition, beside auctions; {@code records} is the number of those. */
  long persons() {
    return Math.max(records / AUCTIONS_PER_PERSON, 1);
  }

  /** People per partition who register beside bids; {@code records} is the number of those. */
  long bidders() {
    return Math.max(records / BIDS_PER_PERSON, 1);
  }

  /** Auctions per partition that open beside bids. */
  long lots() {
    return Math.max(records * AUCTIONS_PER_PERSON / BIDS_PER_PERSON, 1);
  }
}
