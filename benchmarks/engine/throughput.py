"""How many records a second the engine takes: all input is due at once, on two real slots.

    python -m benchmarks.engine.throughput --queries q3,q12 --protocols aligned --records 8000000 --profile

Slots are plain processes with their sockets, files and checkpoints, as in any run; the sink is the egress
log, or counts (`--counting`), as in the comparison with Flink. *Mrec/s* counts input records from the first
moment on to the last pulse in which something was read or written. *us/batch* is the CPU time of all slots
for 4,000 input records; *Mrec/cpu-s* is what one core would do alone. On a busy machine only these two say
much. Every run is judged. With `--profile` one more run per line tells where the time of slot 0 goes;
profiling itself doubles it.
"""

import argparse
import pstats
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.common import kernels, real_run, snapline_side
from benchmarks.common.checks import Load
from benchmarks.common.pages import Session, call, names
from benchmarks.common.real_run import PROGRAM
from benchmarks.common.snapline_side import judged, load_of
from snapline.engine.job import Settings

SLOTS = 2
PROFILED = """
import cProfile, sys, time
import snapline.runtime.slot.process, snapline.workload
profiler = cProfile.Profile(time.thread_time)
profiler.enable()
{program}
profiler.disable()
profiler.dump_stats({where!r} + "/" + sys.argv[1] + ".prof")
"""


def measure(
    load: Load, protocol: str, asked: argparse.Namespace, program: str = PROGRAM
) -> snapline_side.SnaplineRun:
    """Run a query to its end, and judge it."""
    settings = Settings(batch_max_records=asked.batch)
    run = snapline_side.run(
        load,
        protocol=protocol,
        interval_ms=asked.interval_ms,
        egress=not asked.counting,
        settings=settings,
        program=program,
    )
    return judged(load, run)


@contextmanager
def profiled() -> Iterator[tuple[str, Path]]:
    """A program for slots with a profiler in it, and the profile that it will write of the first."""
    with tempfile.TemporaryDirectory() as where:
        yield PROFILED.format(program=PROGRAM, where=where), Path(where) / "process-0.prof"


def profile(load: Load, protocol: str, asked: argparse.Namespace) -> None:
    """One more run, with a profiler in the slots."""
    with profiled() as (program, path):
        measure(load, protocol, asked, program)
        stats = pstats.Stats(str(path))
        stats.sort_stats("tottime").print_stats(asked.lines)
        stats.sort_stats("cumtime").print_stats("snapline", asked.lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=names, default=["q1", "q3", "q8", "q12"])
    parser.add_argument("--protocols", type=names, default=["none", "aligned", "uncoordinated"])
    parser.add_argument("--records", type=int, default=8_000_000, help="of all sources and slots")
    parser.add_argument("--batch", type=int, default=4_000, help="records a batch at most")
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between checkpoints")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--counting", action="store_true", help="the sink counts, and no more")
    parser.add_argument("--profile", action="store_true", help="tell where the time goes, too")
    parser.add_argument("--lines", type=int, default=45, help="of the profile")
    kernels.add_option(parser)
    asked = parser.parse_args()
    chosen = kernels.choose(asked)
    session = Session(cores=SLOTS)
    session.say(f"load of the machine before: {session.load_before:.1f}; {chosen}")
    session.say("query protocol          Mrec/s  Mrec/cpu-s  us/batch  lines")
    for query in asked.queries:
        load = load_of(query, asked.records, SLOTS)
        for protocol in asked.protocols:
            for _ in range(asked.repeat):
                run = measure(load, protocol, asked)
                us = run.done.us_per_batch
                session.say(
                    f"{query:<5} {protocol:<15}{run.rate / 1e6:>9.2f}"
                    f"{real_run.BATCH / us:>12.2f}{us:>10.0f}"
                    f"{run.checkpoints:>7}   right"
                )
            if asked.profile:
                profile(load, protocol, asked)


if __name__ == "__main__":
    call(main)
