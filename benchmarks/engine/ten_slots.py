"""More slots than cores: q3 and q12 on ten of them, without skew and with a hot key, one of them killed.

    python -m benchmarks.engine.ten_slots --queries q3,q12 --hot 0,50 --protocols aligned --seconds 8

Input comes at a rate that a busy machine can take; slot 1 is killed in the middle (`--no-kill` spares it).
It is about being right, not about speed: every run is judged, the number of rows and their checksum. The
memory of the slots is read four times a second; the table has the highest of each slot: the median slot,
and the lowest and highest one.
"""

import argparse
from statistics import median

from benchmarks.common import snapline_side
from benchmarks.common.checks import Load
from benchmarks.common.memory import Memory, memory_of
from benchmarks.common.pages import Session, call, names, numbers, parser_of, table
from benchmarks.common.real_run import every, when_begun
from benchmarks.common.snapline_side import SnaplineRun, judged, paced
from snapline.journal.happenings import SlotLost
from snapline.runtime.driver.driver import Driver

VICTIM = 1
HOW = (
    "Slots are plain processes. Memory in MB, the highest of each slot during the run: the median slot",
    "(lowest to highest); PSS counts what processes share by shares. *Lost*: slots that died on purpose.",
    "All outputs were right.",
)


class Watch:
    """Reads the memory of all slots, and kills one of them."""

    def __init__(self, slots: int, kill_s: float | None) -> None:
        self.slots = slots
        self.kill_s = kill_s
        self.highest: dict[int, Memory] = {}

    def __call__(self, driver: Driver) -> None:
        every(driver, 0.25, lambda: self._look(driver))
        if self.kill_s is not None:
            when_begun(driver, self.kill_s, lambda: driver.killer.kill(VICTIM))

    def _look(self, driver: Driver) -> None:
        for slot in range(self.slots):
            pid = driver.killer.pid(slot)
            if pid is not None and (now := memory_of(pid)) is not None:
                before = self.highest.get(slot, now)
                self.highest[slot] = Memory(max(now.rss, before.rss), max(now.pss, before.pss))

    def told(self, kind: str) -> str:
        """The highest of the median slot, and of the lowest and the highest one."""
        found = [getattr(each, kind) / 1e6 for each in self.highest.values()]
        return f"{median(found):.0f} ({min(found):.0f} to {max(found):.0f})"


def measure(load: Load, protocol: str, asked: argparse.Namespace) -> tuple[SnaplineRun, Watch]:
    """One run, judged."""
    watch = Watch(asked.slots, asked.seconds / 2 if asked.kill else None)
    run = snapline_side.run(load, protocol=protocol, interval_ms=asked.interval_ms, prepare=watch)
    if asked.kill and not run.done.happened[SlotLost]:
        raise SystemExit(f"nobody was killed in {load}: ask for more --seconds")
    return judged(load, run), watch


def main() -> None:
    parser = parser_of(__doc__, "ten_slots.md")
    parser.add_argument("--queries", type=names, default=["q3", "q12"])
    parser.add_argument("--hot", type=numbers, default=[0, 50], help="percent that name a hot key")
    parser.add_argument("--protocols", type=names, default=["aligned", "uncoordinated"])
    parser.add_argument("--slots", type=int, default=10)
    parser.add_argument("--rate", type=int, default=50_000, help="records a second, all together")
    parser.add_argument("--seconds", type=float, default=8, help="of input")
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between checkpoints")
    parser.add_argument("--no-kill", dest="kill", action="store_false", help="let all slots live")
    asked = parser.parse_args()
    session = Session()
    rows = []
    for query in asked.queries:
        for hot in asked.hot:
            load = paced(query, asked.rate, asked.seconds, asked.slots, hot=hot)
            for protocol in asked.protocols:
                run, watch = measure(load, protocol, asked)
                rows.append(
                    [
                        query,
                        f"{hot} %",
                        f"`{protocol}`",
                        f"{load.records:,}",
                        f"{run.tally.count:,}",
                        run.checkpoints,
                        run.done.happened[SlotLost],
                        watch.told("rss"),
                        watch.told("pss"),
                    ]
                )
                session.say(" ".join(map(str, rows[-1])) + "  right")
    head = ["query", "hot", "protocol", "records", "rows", "lines", "lost", "RSS MB", "PSS MB"]
    how = [f"{asked.slots} slots, {asked.rate:,} records/s for {asked.seconds:g} s.", *HOW]
    session.write(asked.to, f"{asked.slots} slots on one machine", how, [table(head, rows)])


if __name__ == "__main__":
    call(main)
