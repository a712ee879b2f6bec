"""A large job in the simulator: q3 on 100 slots (600 tasks, 20,300 channels), with a crash in the middle.

    python -m benchmarks.simulator.hundred_slots [--slots N] [--records N] [--protocols P,P] [--profile]

The goal is less than five minutes for each protocol. The invariants that look at whole lines are left
out (`thorough=False`): they are meant for jobs that fit on a page. The result is judged all the same.
*seconds* passed on the clock; *cpu* is what this process computed.
"""

import argparse
import cProfile
import os
import pstats
import time

from snapline.chaos.faults import parse
from snapline.core.guarantee import Guarantee
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.engine.job import Job, Settings
from snapline.protocols import PROTOCOLS
from snapline.sim.inject import SimInjector
from snapline.sim.run import outputs, states
from snapline.sim.watch.watched import WatchedWorld
from snapline.sim.world.costs import Costs
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params

WORKLOAD = WORKLOADS["q3"]
SEED = 1
DURATION_MS = 4_000
INTERVAL_MS = 700
FAULTS = "kill slot=1 at=2500ms"
PATIENCE_US = 600_000_000

COLUMNS = ("messages", "delivered", "checkpoints", "commits", "rollbacks", "replayed", "published")
HEADER = f"{'protocol':<15}{'seconds':>9}{'cpu':>7}{'virtual s':>11}" + "".join(
    f"{name:>13}" for name in COLUMNS
)


def build(protocol: str, params: Params) -> WatchedWorld:
    job = Job(
        f"q3-{protocol}",
        deploy(WORKLOAD.build(params), params.partitions),
        PROTOCOLS[protocol],
        Options(interval_ms=INTERVAL_MS, deadline_ms=10 * INTERVAL_MS),
        Guarantee.EXACTLY_ONCE,
        Settings(linger_ms=100),
        SEED,
    )
    world = WatchedWorld(job, Costs(), thorough=False)
    SimInjector(world, parse(FAULTS), SEED).plan()
    return world


def verdict(world: WatchedWorld, params: Params) -> str:
    if not world.finished or world.problem is not None:
        return world.problem or "it did not end"
    found = WORKLOAD.judge(params, outputs(world), states(world), Guarantee.EXACTLY_ONCE)
    return f"{found[0].kind} {found[0].record}" if found else "right"


def measure(protocol: str, params: Params) -> None:
    began, before = time.perf_counter(), time.process_time()
    world = build(protocol, params)
    world.run(PATIENCE_US)
    seconds, cpu = time.perf_counter() - began, time.process_time() - before
    stats = world.monitor.stats
    print(
        f"{protocol:<15}{seconds:>9.1f}{cpu:>7.1f}{world.now_us / 1e6:>11.2f}"
        + "".join(f"{stats[name]:>13,}" for name in COLUMNS)
        + f"   {verdict(world, params)}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--slots", type=int, default=100)
    parser.add_argument("--records", type=int, default=60, help="per slot and source")
    parser.add_argument("--protocols", default="aligned,uncoordinated")
    parser.add_argument("--profile", action="store_true", help="tell where the time goes, too")
    asked = parser.parse_args()
    params = Params(SEED, asked.slots, asked.records, DURATION_MS)
    print(f"{asked.slots} slots; load of the machine before: {os.getloadavg()[0]:.1f}")
    print(HEADER)
    for protocol in asked.protocols.split(","):
        profiler = cProfile.Profile()
        if asked.profile:
            profiler.enable()
        measure(protocol, params)
        if asked.profile:
            profiler.disable()
            pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
