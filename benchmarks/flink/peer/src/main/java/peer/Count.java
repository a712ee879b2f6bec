package peer;

/** So many bids of a bidder in a window so far. */
public class Count {
  public long bidder;
  public long window;
  public long count;
  public long time;
}
