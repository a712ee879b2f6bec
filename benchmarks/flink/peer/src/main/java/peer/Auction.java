package peer;

/** An auction opens. */
public class Auction {
  public long id;
  public long time;
  public long auction;
  public long seller;
  public long category;
  public long reserve;
}
