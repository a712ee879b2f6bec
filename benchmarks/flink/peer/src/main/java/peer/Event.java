package peer;

/** A person or an auction: the other one is null. */
public class Event {
  public Person person;
  public Auction auction;

  long time() {
    return person != null ? person.time : auction.time;
  }
}
