package peer;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;

/**
 * One field of one partition, as numbers that depend on (seed, field, partition, offset) alone: the
 * functions {@code draw} and {@code draw_bits} of snapline/workload/generated.py.
 */
final class Draw implements Serializable {
  private static final long GOLDEN = 0x9E3779B97F4A7C15L;

  private final long start;

  Draw(long seed, String field, int partition) {
    CRC32 crc = new CRC32();
    crc.update(field.getBytes(StandardCharsets.UTF_8));
    start = mix(mix(seed * GOLDEN + crc.getValue()) + partition);
  }

  /** Evenly distributed in [0, below). */
  long at(long offset, long below) {
    return Long.remainderUnsigned(bits(offset), below);
  }

  /** 64 even bits. */
  long bits(long offset) {
    return mix(start + offset * GOLDEN);
  }

  /** Evenly distributed in [0, below), from some of those bits. */
  static long part(long bits, int first, int width, long below) {
    return ((bits >>> first) & ((1L << width) - 1)) * below >> width;
  }

  /** The finaliser of splitmix64. */
  private static long mix(long word) {
    word += GOLDEN;
    word = (word ^ (word >>> 30)) * 0xBF58476D1CE4E5B9L;
    word = (word ^ (word >>> 27)) * 0x94D049BB133111EBL;
    return word ^ (word >>> 31);
  }
}
