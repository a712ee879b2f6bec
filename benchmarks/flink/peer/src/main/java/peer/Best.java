package peer;

/** An auction in a window: how many bids it has, or its highest one. */
public class Best {
  public long window;
  public long auction;
  public long value;
  public long time;
}
