package peer;

/** An auction with its seller. */
public class Sale {
  public long time;
  public long auction;
  public long category;
  public long reserve;
  public long person;
  public String name;
  public String city;
  public String state;
}
