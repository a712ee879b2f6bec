package peer;

import java.io.Serializable;

/** One partition of the streams, field for field as snapline/workload/nexmark/model.py makes them in full. */
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
  private static final int ACTIVE = 1_000;
  private static final int IN_FLIGHT = 100;
  private static final int CATEGORIES = 5;
  static final int FIRST_CATEGORY = 10;
  private static final int OCTAVES = 20;
  private static final int STEPS = 64;
  private static final long[] PRICES = prices();

  private final Size size;
  private final int partition;
  private final long people;
  private final long bidders;
  private final long lots;
  private final Draw personBits;
  private final Draw personDelay;
  private final Draw auctionBits;
  private final Draw auctionDelay;
  private final Hot seller;
  private final Draw bidBits;
  private final Hot bidder;
  private final Hot lot;

  Model(Size size, int partition) {
    this.size = size;
    this.partition = partition;
    people = size.persons();
    bidders = size.bidders();
    lots = size.lots();
    personBits = draw("persons");
    personDelay = draw("persons.delay");
    auctionBits = draw("auctions");
    auctionDelay = draw("auctions.delay");
    seller = new Hot(size, "auctions.seller", partition, people);
    bidBits = draw("bids");
    bidder = new Hot(size, "bids.bidder", partition, bidders);
    lot = new Hot(size, "bids.auction", partition, lots);
  }

  Person person(long offset) {
    long bits = personBits.bits(offset);
    Person it = new Person();
    it.id = id(offset);
    it.time = time(offset, people, personDelay);
    it.person = offset * size.partitions() + partition;
    it.name = NAMES[(int) Draw.part(bits, 0, 21, NAMES.length)];
    it.city = CITIES[(int) Draw.part(bits, 21, 21, CITIES.length)];
    it.state = STATES[(int) Draw.part(bits, 42, 21, STATES.length)];
    return it;
  }

  Auction auction(long offset) {
    long bits = auctionBits.bits(offset);
    long there = there(offset, people);
    long some = there - Draw.part(bits, 0, 21, Math.min(there, ACTIVE) + 1);
    Auction it = new Auction();
    it.id = id(offset);
    it.time = time(offset, size.records(), auctionDelay);
    it.auction = offset * size.partitions() + partition;
    it.seller = seller.instead(Math.min(some, people * size.partitions() - 1), offset);
    it.category = FIRST_CATEGORY + Draw.part(bits, 21, 11, CATEGORIES);
    it.reserve = price(bits, 32, 16) + price(bits, 48, 16);
    return it;
  }

  Bid bid(long offset) {
    long bits = bidBits.bits(offset);
    long opened = there(offset, lots);
    long registered = there(offset, bidders);
    long auction = opened - 1 - Draw.part(bits, 24, 16, Math.min(opened, IN_FLIGHT));
    long person = registered - 1 - Draw.part(bits, 0, 24, Math.min(registered, ACTIVE));
    Bid it = new Bid();
    it.id = id(offset);
    it.time = offset * size.durationMs() / size.records();
    it.auction = lot.instead(auction, offset);
    it.bidder = bidder.instead(person, offset);
    it.price = price(bits, 40, 24);
    return it;
  }

  /** How many there are by now, over all partitions, of what each partition will have so many. */
  private long there(long offset, long count) {
    return (offset * count / size.records() + 1) * size.partitions();
  }

  private static long price(long bits, int first, int width) {
    return PRICES[(int) Draw.part(bits, first, width, PRICES.length)];
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

  private static long[] prices() {
    long[] all = new long[OCTAVES * STEPS];
    for (int i = 0; i < all.length; i++) {
      all[i] = (100L * (STEPS + i % STEPS) << i / STEPS) / STEPS;
    }
    return all;
  }
}
