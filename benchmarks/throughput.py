"""How many records a second the engine takes: all input is due at once, on two real slots.

    python benchmarks/throughput.py [--queries Q,Q] [--protocols P,P] [--records N] [--profile]

Slots are plain processes with their sockets, files and checkpoints, as in any run; the sink is the egress
log. *Mrec/s* counts input records from the first moment on to the last pulse in which something was read or
written. *us/batch* is the CPU time of all slots over the batches that
sources have read; *Mrec/cpu-s* is what one core would do alone. On a busy machine only these two say much.
With `--profile` one more run per line tells where the time of slot 0 goes; profiling itself doubles it.
"""

import argparse
import os
import pstats
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from snapline.core.protocol import Options
from snapline.dataflow.graph import Dataflow, deploy
from snapline.engine.job import Job, Settings
from snapline.protocols import PROTOCOLS
from snapline.runtime.driver import Driver, Timeouts
from snapline.runtime.process_slots import PROGRAM, ProcessSlots
from snapline.runtime.rundir import RunDirectory
from snapline.runtime.timeline import Timeline
from snapline.runtime.words import Pulse
from snapline.workload import WORKLOADS
from snapline.workload.base import Params
from snapline.workload.generated import Generated
from snapline.workload.nexmark import model
from snapline.workload.nexmark.oracle import SINK, window_ms

SLOTS = 2
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TIMEOUTS = Timeouts(heartbeat_s=0.1, silence_s=30, lease_s=30)
PROFILED = """
import cProfile, sys, time
profiler = cProfile.Profile(time.thread_time)
profiler.enable()
{program}
profiler.disable()
profiler.dump_stats({where!r} + "/" + sys.argv[1] + ".prof")
"""


def many_bidders(bidders: int, params: Params) -> Dataflow:
    """q12, with as many keys as asked for: those of the workload are eight."""
    flow = Dataflow("q12")
    fields = partial(model.bid_fields, bidders=bidders)
    source = Generated("bids", params, fields, params.records)
    bids = flow.source(source, name="bids").key_by("bidder")
    bids.tumbling(window_ms(params)).count(name="count").sink(SINK)
    return flow


class PatientSlots(ProcessSlots):
    """Lets the processes end by themselves: a profile is written last."""

    def stop(self) -> None:
        for process in self.processes.values():
            process.wait(timeout=20)


class Pulses(Timeline):
    """Remembers when something was done last."""

    def __init__(self) -> None:
        super().__init__()
        self.read = self.written = 0
        self.last_s = 0.0

    def pulse(self, slot: int, pulse: Pulse) -> None:
        super().pulse(slot, pulse)
        if pulse.read or pulse.written:
            self.read += pulse.read
            self.written += pulse.written
            self.last_s = time.time()


@dataclass
class Measured:
    """One run."""

    seconds: float
    read: int
    written: int
    lines: int
    problem: str | None
    cpu_s: list[float] = field(default_factory=list)


def cpu_s(pid: int) -> float:
    """What a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def a_job(query: str, protocol: str, params: Params, asked: argparse.Namespace) -> Job:
    own = {"q12": partial(many_bidders, asked.bidders)}
    build = own.get(query, WORKLOADS[query].build)
    return Job(
        query,
        deploy(build(params), SLOTS),
        PROTOCOLS[protocol],
        Options(interval_ms=asked.interval_ms),
        PROTOCOLS[protocol].guarantees[0],
        Settings(linger_ms=2, batch_max_records=asked.batch),
    )


def measure(query: str, protocol: str, asked: argparse.Namespace, program: str) -> Measured:
    """Run a query to its end."""
    params = Params(1, SLOTS, asked.records // SLOTS, asked.event_ms, at_once=True)
    job = a_job(query, protocol, params, asked)
    with tempfile.TemporaryDirectory(dir=asked.directory) as runs:
        directory = RunDirectory.create(Path(runs), query, protocol, {})
        pulses = Pulses()
        began: list[float] = []
        before: list[float] = []
        used: list[float] = []

        def pids() -> list[int]:
            return [pid for slot in range(SLOTS) if (pid := driver.pid(slot)) is not None]

        def begin(origin_s: float) -> None:
            began.append(origin_s)
            before.extend(cpu_s(pid) for pid in pids())

        def end(close: Callable[[], None]) -> None:
            used.extend(cpu_s(pid) for pid in pids())
            close()

        slots = PatientSlots(
            lambda why: driver.loop.post(lambda: driver.finish(why)), program=program
        )
        driver = Driver(job, directory, slots, timeouts=TIMEOUTS, timeline=pulses)
        driver.on_begin = begin
        driver._close = partial(end, driver._close)  # type: ignore[method-assign]
        problem = driver.run()
        for complaint in slots.complaints():
            print(complaint)
        return Measured(
            pulses.last_s - began[0],
            pulses.read,
            pulses.written,
            len(pulses.seconds) and pulses.seconds[-1].lines,
            problem,
            [after - earlier for after, earlier in zip(used, before, strict=True)],
        )


def tell(query: str, protocol: str, found: Measured, asked: argparse.Namespace) -> None:
    cpu = sum(found.cpu_s)
    share = " ".join(f"{each / found.seconds:.0%}" for each in found.cpu_s)
    print(
        f"{query:<5}{protocol:<15}{found.read / found.seconds / 1e6:>9.2f}"
        f"{found.read / cpu / 1e6:>12.2f}{cpu * 1e6 / (found.read / asked.batch):>10.0f}"
        f"{found.seconds:>8.1f}{share:>11}{found.written:>12,}{found.lines:>6}"
        f"{'   ' + found.problem if found.problem else ''}",
        flush=True,
    )


def profile(query: str, protocol: str, asked: argparse.Namespace) -> None:
    """One more run, with a profiler in the slots."""
    with tempfile.TemporaryDirectory() as where:
        measure(query, protocol, asked, PROFILED.format(program=PROGRAM, where=where))
        stats = pstats.Stats(str(Path(where) / "process-0.prof"))
        stats.sort_stats("tottime").print_stats(asked.lines)
        stats.sort_stats("cumtime").print_stats("snapline", asked.lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", default="q1,q3,q8,q12")
    parser.add_argument("--protocols", default="none,aligned,uncoordinated")
    parser.add_argument("--records", type=int, default=8_000_000, help="per source, of all slots")
    parser.add_argument("--bidders", type=int, default=10_000, help="keys of q12")
    parser.add_argument("--batch", type=int, default=4_000, help="records a batch at most")
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between checkpoints")
    parser.add_argument("--event-ms", type=int, default=60_000, help="the times of the input span")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--directory", default=None, help="where the runs' files go")
    parser.add_argument("--profile", action="store_true", help="tell where the time goes, too")
    parser.add_argument("--lines", type=int, default=45, help="of the profile")
    asked = parser.parse_args()
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
    print("query protocol       Mrec/s  Mrec/cpu-s  us/batch seconds   cpu/slot     written lines")
    for query in asked.queries.split(","):
        for protocol in asked.protocols.split(","):
            for _ in range(asked.repeat):
                tell(query, protocol, measure(query, protocol, asked, PROGRAM), asked)
            if asked.profile:
                profile(query, protocol, asked)


if __name__ == "__main__":
    main()
