package peer;

import java.io.Serializable;

/** One partition of the three streams, field for field as snapline/workload/nexmark/model.py makes them. */
final class Model implements Serializable {
  private static final String[] STATES = {"AZ", "CA", "ID", "OR", "WA", "WY"};
  private static final String[] CITIES = {
    "Bend", "Boise", "Kent", "Palo Alto", "Phoenix", "Portland", "Redmond"
  };
  private static final String[] FIRST = {
    "Ada", "Deiter", "Edsger", "Grace", "Jaiden", "Kate", "Luke", "Vicky"
  };
  private static final String[] LAST = {
    "Abrams", "Bartels", "Noris", "Shultz", "Smith", "Walton", "White"
  };
  private static final String[] NAMES = names();
  private static final int PARTITION_BITS = 40;
  private static final int ACTIVE = 6;
  private static final int CATEGORIES = 3;
  static final int FIRST_CATEGORY = 10;

  private final Size size;
  private final int partition;
  private final Draw personName;
  private final Draw personCity;
  private final Draw personState;
  private final Draw personDelay;
  private final Draw auctionAge;
  private final Draw auctionSeller;
  private final Draw auctionCategory;
  private final Draw auctionReserve;
  private final Draw auctionDelay;
  private final Draw bidAuction;
  private final Draw bidBidder;
  private final Draw bidPrice;

  Model(Size size, int partition) {
    this.size = size;
    this.partition = partition;
    personName = draw("persons.name");
    personCity = draw("persons.city");
    personState = draw("persons.state");
    personDelay = draw("persons.delay");
    auctionAge = draw("auctions.age");
    auctionSeller = draw("auctions.seller");
    auctionCategory = draw("auctions.category");
    auctionReserve = draw("auctions.reserve");
    auctionDelay = draw("auctions.delay");
    bidAuction = draw("bids.auction");
    bidBidder = draw("bids.bidder");
    bidPrice = draw("bids.price");
  }

  Person person(long offset) {
    Person it = new Person();
    it.id = id(offset);
    it.time = time(offset, size.persons(), personDelay);
    it.person = offset * size.partitions() + partition;
    it.name = NAMES[(int) personName.at(offset, NAMES.length)];
    it.city = CITIES[(int) personCity.at(offset, CITIES.length)];
    it.state = STATES[(int) personState.at(offset, STATES.length)];
    return it;
  }

  Auction auction(long offset) {
    long people = size.persons();
    long latest = offset * people / size.records() + 1;
    long seller = Math.min(Math.max(latest - auctionAge.at(offset, ACTIVE), 0), people - 1);
    Auction it = new Auction();
    it.id = id(offset);
    it.time = time(offset, size.records(), auctionDelay);
    it.auction = offset * size.partitions() + partition;
    it.seller = seller * size.partitions() + auctionSeller.at(offset, size.partitions());
    it.category = FIRST_CATEGORY + auctionCategory.at(offset, CATEGORIES);
    it.reserve = 100 + auctionReserve.at(offset, 9_900);
    return it;
  }

  Bid bid(long offset) {
    Bid it = new Bid();
    it.id = id(offset);
    it.time = offset * size.durationMs() / size.records();
    it.auction = bidAuction.at(offset, size.partitions() * size.records());
    it.bidder = bidBidder.at(offset, size.bidders());
    it.price = 100 + bidPrice.at(offset, 99_900);
    return it;
  }

  private long id(long offset) {
    return ((long) partition << PARTITION_BITS) + offset;
  }

  private long time(long offset, long records, Draw delay) {
    long due = offset * size.durationMs() / records;
    return size.disorderMs() == 0
        ? due
        : Math.max(due - delay.at(offset, size.disorderMs() + 1), 0);
  }

  private Draw draw(String field) {
    return new Draw(size.seed(), field, partition);
  }

  private static String[] names() {
    String[] all = new String[FIRST.length * LAST.length];
    for (int i = 0; i < all.length; i++) {
      all[i] = FIRST[i / LAST.length] + " " + LAST[i % LAST.length];
    }
    return all;
  }
}
