package peer;

/** What was spent on how many records, from one moment to another; and from the end of a warm-up on. */
record Spent(long atNs, long cpuAtNs, long recordsAt, long warmAtNs, long warmCpuAtNs, Spent end) {

  static Spent fromNow() {
    long now = System.nanoTime();
    long cpu = Usage.cpuNs();
    return new Spent(now, cpu, Pace.total(), now, cpu, null);
  }

  /** The same, the warm-up being over now. */
  Spent warm() {
    return new Spent(atNs, cpuAtNs, recordsAt, System.nanoTime(), Usage.cpuNs(), null);
  }

  /** The same, being over now. */
  Spent toNow() {
    return new Spent(atNs, cpuAtNs, recordsAt, warmAtNs, warmCpuAtNs, fromNow());
  }

  long records() {
    return end.recordsAt - recordsAt;
  }

  double seconds() {
    return (end.atNs - atNs) / 1e9;
  }

  double cpuS() {
    return (end.cpuAtNs - cpuAtNs) / 1e9;
  }

  double warmSeconds() {
    return (end.atNs - warmAtNs) / 1e9;
  }

  double warmCpuS() {
    return (end.cpuAtNs - warmCpuAtNs) / 1e9;
  }
}
