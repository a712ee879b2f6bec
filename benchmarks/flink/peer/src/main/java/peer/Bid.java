package peer;

/** Somebody bids. */
public class Bid {
  public long id;
  public long time;
  public long auction;
  public long bidder;
  public long price;
}
