"""What partial fault tolerance costs while nothing fails: q12 at full speed beside `none`, in pairs.

    python -m benchmarks.engine.protection --turns 7 --seconds 4

Three settings, each beside `none` in the same turn, in an order that is drawn for every turn: `partial`
with nothing saved, with every operator saved once a second, and a flow of 80 tasks (as many stateful stages
before the count as that takes) of which each is saved once a second. Every run is judged: the number of
rows and their checksum. A ratio below 1 means that protection costs speed; its interval is that of
`snapline compare`.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from benchmarks.common import real_run
from benchmarks.common.checks import Load, Tally
from benchmarks.common.pages import Session, call, parser_of, table
from benchmarks.common.snapline_side import (
    added,
    by_value,
    judged,
    load_of,
    tally_of,
    with_counting_sink,
)
from snapline.batch import Batch
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.operator import OUT, Operator, Outputs
from snapline.experiments.statistics import paired
from snapline.journal.happenings import CheckpointTimed, LineDecided
from snapline.workload.nexmark import model
from snapline.workload.nexmark.oracle import SINK, window_ms

TASKS = 80
SLOTS = 2
BESIDE_STAGES = 3  # operators of q12 itself: source, count, sink
PILOT_RECORDS = 1_000_000
HOW = (
    "q12 on two slots as plain processes, the sink counts. Ratios of records per second, and of CPU time",
    "of all slots, to `none` in the same turn: geometric mean, and the interval that holds the true ratio",
    "with 95 %. Counts are medians. All outputs were right.",
)


class Stage(Operator):
    """Passes everything on, and counts it: a small state that changes with every batch."""

    saved = ("seen",)

    def __init__(self) -> None:
        self.seen = 0

    def process(self, port: str, batch: Batch) -> Outputs:
        self.seen += len(batch)
        return ((OUT, batch),)


def plain(load: Load) -> Dataflow:
    """q12 as it is."""
    return with_counting_sink(load.flow())


def long(load: Load) -> Dataflow:
    """q12 behind so many stages that it has 80 tasks."""
    flow = Dataflow("q12")
    bids = flow.source(model.bids(load.params), name="bids")
    for number in range(TASKS // SLOTS - BESIDE_STAGES):
        bids = bids.apply(Stage, name=f"stage-{number}")
    windows = bids.key_by("bidder").tumbling(window_ms(load.params))
    windows.running_count(name="count").sink(SINK)
    return with_counting_sink(flow)


def saved(flow: Dataflow, how: str) -> Dataflow:
    """The same flow, with every operator saved like this."""
    return by_value(flow.with_policies(dict.fromkeys(flow.graph.nodes, how), {}))


@dataclass(frozen=True)
class Setting:
    """One way to run q12."""

    name: str
    flow: Callable[[Load], Dataflow]
    protocol: str
    base: str = ""  # the setting beside which it stands
    lean: bool = True


SETTINGS = (
    Setting("none", plain, "none"),
    Setting("nothing saved", lambda load: saved(plain(load), "no"), "partial", "none"),
    Setting("all saved every 1 s", lambda load: saved(plain(load), "1s"), "partial", "none"),
    Setting("none, 80 tasks", long, "none", lean=False),
    Setting(
        "80 tasks, each saved every 1 s",
        lambda load: saved(long(load), "1s"),
        "partial",
        "none, 80 tasks",
        lean=False,
    ),
)


@dataclass(frozen=True)
class Cost:
    """One run."""

    tally: Tally
    rate: float  # records per second
    us: float  # of CPU, for 4,000 records
    stored: int  # checkpoints
    decisions: int


def measure(setting: Setting, records: float) -> Cost:
    """One run, judged."""
    load = load_of("q12", records, SLOTS)
    with real_run.finished(
        setting.flow(load), SLOTS, protocol=setting.protocol, lean=setting.lean
    ) as done:
        if not setting.lean and len(done.job.deployment.plans) != TASKS:
            raise SystemExit(f"{len(done.job.deployment.plans)} tasks, not {TASKS}")
        tally = Tally(0, 0)
        for _, row in done.rows(SINK):
            tally = added(tally, tally_of(row))
        rate = load.records / done.elapsed_s
        counts = done.happened[CheckpointTimed], done.happened[LineDecided]
        return judged(load, Cost(tally, rate, done.us_per_batch, *counts))


def measure_all(session: Session, turns: int, seconds: float) -> dict[str, list[Cost]]:
    """All settings, in turns."""
    needed = {}
    for setting in SETTINGS:
        base = setting.base or setting.name
        if base not in needed:
            needed[base] = measure(setting, PILOT_RECORDS).rate * seconds
            session.say(f"-  {base}: {needed[base]:,.0f} records a run")
    costs: dict[str, list[Cost]] = defaultdict(list)
    drawn = random.Random(1)
    for turn in range(turns):
        for setting in drawn.sample(SETTINGS, len(SETTINGS)):
            found = measure(setting, needed[setting.base or setting.name])
            costs[setting.name].append(found)
            session.say(
                f"{turn + 1}  {setting.name:<30} {found.rate:>12,.0f} rec/s  {found.us:>7,.0f} us/batch  "
                f"{found.stored} checkpoints, {found.decisions} decisions, right"
            )
    return costs


def cost_table(costs: dict[str, list[Cost]]) -> list[str]:
    """Ratios to `none`, a row for each setting."""
    rows = []
    for setting in SETTINGS:
        found, base = costs[setting.name], costs[setting.base or setting.name]
        rate = _figure(setting, [cost.rate for cost in base], [cost.rate for cost in found])
        cpu = _figure(setting, [cost.us for cost in base], [cost.us for cost in found])
        stored = median(cost.stored for cost in found)
        decisions = median(cost.decisions for cost in found)
        rows.append([setting.name, rate, cpu, f"{stored:.0f}", f"{decisions:.0f}"])
    head = ["setting", "records per second", "CPU us per 4,000 records", "checkpoints", "decisions"]
    return table(head, rows)


def _figure(setting: Setting, base: list[float], found: list[float]) -> str:
    """The value of `none` itself, and the ratio to it of others."""
    if not setting.base:
        return f"{median(found):,.0f}"
    ratio = paired(base, found)
    return f"**{ratio.estimate:.3f}** ({ratio.low:.3f} to {ratio.high:.3f})"


def main() -> None:
    parser = parser_of(__doc__, "protection.md")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4, help="of each run, about")
    asked = parser.parse_args()
    session = Session(cores=SLOTS)
    costs = measure_all(session, asked.turns, asked.seconds)
    how = [f"Turns: {asked.turns}; commit {session.commit()}.", *HOW]
    session.write(asked.to, "What partial fault tolerance costs", how, [cost_table(costs)])


if __name__ == "__main__":
    call(main)
