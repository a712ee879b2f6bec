"""How many simulated runs a machine does in a second: counting, three slots, faults drawn from each seed.

    python -m benchmarks.simulator.simulator [--seeds N] [--jobs N] [--protocols P,P] [--profile]

The goal is 1,000 seeds in less than 60 s on two cores. *seconds* passed on the clock; *cpu* is what all
processes together computed, so on a machine that does nothing else it takes about *cpu* / cores.
"""

import argparse
import cProfile
import os
import pstats
import resource
import time
from collections.abc import Sequence

from snapline.sim.case import Case
from snapline.sim.explore import sweep
from snapline.sim.run import Outcome, simulate

HEADER = f"{'protocol':<15}{'runs':>7}{'seconds':>9}{'cpu':>8}{'runs/s':>8}{'broken':>8}" + "".join(
    f"{name:>12}" for name in ("crashes/run", "commits/run", "msgs/run")
)


def row(protocol: str, outcomes: Sequence[Outcome], seconds: float, cpu: float) -> str:
    runs = len(outcomes)
    per_run = [
        sum(outcome.stats.get(name, 0) for outcome in outcomes) / runs
        for name in ("crashes", "commits", "messages")
    ]
    broken = sum(outcome.violation is not None for outcome in outcomes)
    speed = f"{seconds:>9.1f}{cpu:>8.1f}{runs / seconds:>8.1f}"
    return f"{protocol:<15}{runs:>7,}{speed}{broken:>8}" + "".join(
        f"{number:>12.1f}" for number in per_run
    )


def cpu_seconds() -> float:
    """What this process and its children that have ended have computed."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def measure(protocol: str, seeds: int, jobs: int) -> None:
    cases = [Case(protocol, "counting", seed) for seed in range(seeds)]
    began, before = time.perf_counter(), cpu_seconds()
    outcomes = sweep(cases, jobs, lambda _: None)
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - before
    print(row(protocol, outcomes, seconds, cpu), flush=True)
    for outcome in outcomes:
        if outcome.violation is not None:
            print(f"  broken: {outcome.violation.name}: {outcome.case.command()}")


def profile(protocol: str, seeds: int) -> None:
    """Where the time of one core goes; the profiler itself makes every call dearer."""
    profiler = cProfile.Profile()
    profiler.enable()
    for seed in range(seeds):
        simulate(Case(protocol, "counting", seed))
    profiler.disable()
    print(f"\n{protocol}: {seeds} runs, by the time spent in each function itself")
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--protocols", default="aligned,uncoordinated")
    parser.add_argument("--profile", action="store_true", help="tell where the time goes instead")
    asked = parser.parse_args()
    if not asked.profile:
        load = os.getloadavg()[0]
        print(f"{asked.jobs} processes; load of the machine before: {load:.1f}")
        print(HEADER)
    for protocol in asked.protocols.split(","):
        if asked.profile:
            profile(protocol, min(asked.seeds, 40))
        else:
            measure(protocol, asked.seeds, asked.jobs)


if __name__ == "__main__":
    main()
