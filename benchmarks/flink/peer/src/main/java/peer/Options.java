package peer;

import java.util.HashMap;
import java.util.Map;

/** What was asked for, as name=value words; benchmarks/flink/flink_peer.py says them all. */
record Options(
    String query,
    Size size,
    long windowMs,
    long everyMs,
    long warmMs,
    boolean paced,
    boolean reuse,
    long checkpointMs,
    long bufferMs,
    String directory) {

  static Options parse(String[] words) {
    Map<String, String> said = new HashMap<>();
    for (String word : words) {
      String[] sides = word.split("=", 2);
      said.put(sides[0], sides[1]);
    }
    Size size =
        new Size(
            number(said, "seed"),
            (int) number(said, "partitions"),
            number(said, "records"),
            number(said, "duration_ms"),
            number(said, "disorder_ms"),
            number(said, "hot"),
            number(said, "hot_ms"));
    return new Options(
        said.get("query"),
        size,
        number(said, "window_ms"),
        number(said, "every_ms"),
        number(said, "warm_ms"),
        Boolean.parseBoolean(said.get("paced")),
        Boolean.parseBoolean(said.get("reuse")),
        number(said, "checkpoint_ms"),
        number(said, "buffer_ms"),
        said.get("directory"));
  }

  private static long number(Map<String, String> said, String name) {
    return Long.parseLong(said.get(name));
  }
}
