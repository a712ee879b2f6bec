package peer;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Compares the generator with records that Snapline's own has made: golden.txt, one record a line. */
final class Check {
  /** The words of a line that say which record it is. */
  private static final int SIZE = 10;

  private Check() {}

  /** How many records agree; throws at the first that does not. */
  static int all(Path golden) throws IOException {
    int agreed = 0;
    for (String line : Files.readAllLines(golden)) {
      if (line.startsWith("#")) {
        continue;
      }
      String[] words = line.split("\t");
      String expected = String.join("\t", List.of(words).subList(SIZE, words.length));
      String made = record(words);
      if (!made.equals(expected)) {
        throw new AssertionError(line + "\nbut here it is\n" + made);
      }
      agreed++;
    }
    if (agreed == 0) {
      throw new AssertionError("there is nothing to compare in " + golden);
    }
    return agreed;
  }

  private static String record(String[] words) {
    long[] numbers = new long[SIZE];
    for (int i = 1; i < numbers.length; i++) {
      numbers[i] = Long.parseLong(words[i]);
    }
    Size size =
        new Size(
            numbers[1],
            (int) numbers[2],
            numbers[3],
            numbers[4],
            numbers[5],
            numbers[6],
            numbers[7]);
    Model model = new Model(size, (int) numbers[8]);
    return switch (words[0]) {
      case "bids" -> text(model.bid(numbers[9]));
      case "persons" -> text(model.person(numbers[9]));
      case "auctions" -> text(model.auction(numbers[9]));
      default -> throw new IllegalArgumentException(words[0]);
    };
  }

  private static String text(Bid it) {
    return join(it.id, it.time, it.auction, it.bidder, it.price);
  }

  private static String text(Person it) {
    return join(it.id, it.time, it.person, it.name, it.city, it.state);
  }

  private static String text(Auction it) {
    return join(it.id, it.time, it.auction, it.seller, it.category, it.reserve);
  }

  private static String join(Object... values) {
    StringBuilder text = new StringBuilder();
    for (Object value : values) {
      text.append(text.isEmpty() ? "" : "\t").append(value);
    }
    return text.toString();
  }
}
