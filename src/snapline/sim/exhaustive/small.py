"""The small jobs that are searched: two slots, a few records for each, and what must come out.

`chain`: a source, and behind a shuffle a running count per key, which a sink writes. Each of the two
sources sends its first record to the other slot and its second to its own.

`cycle`: the same, but the operator that counts sends each record around once more, to the other key,
which the other slot has. A record that has been around goes to the sink. What is judged is the
operator's state, which has counted every record twice, and what the sink has published, which has every
record once.

Both are deployed as real runs are: operators that need no message between them are one task.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.core.protocol import CheckpointProtocol, Options
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.operator import OUT, Capture, Operator, Outputs
from snapline.dataflow.partition import targets_of
from snapline.engine.job import Job, Settings
from snapline.ids import Millis
from snapline.storage.list_ingress import ListIngress
from snapline.wording import plural
from snapline.workload.oracles.count_verdict import judge_counts, judge_numbers
from snapline.workload.oracles.verdict import Problems

SLOTS = 2
NOW_MS: Millis = 1_000  # all input is due by then
CHAIN, CYCLE = "chain", "cycle"
GRAPHS = (CHAIN, CYCLE)
RECORDS_MAX = 4  # for each source; with more, the number of interleavings is beyond any budget
BACK = "back"


@dataclass(frozen=True, slots=True)
class Small:
    """One space to search: a graph and the records that each source reads."""

    graph: str
    records: int = 2

    def inputs(self) -> list[Batch]:
        """The records of each source: key, time, id, and how often they still go around."""
        here = _keys()
        batches = []
        for source in range(SLOTS):
            ids = np.arange(self.records, dtype=np.int64) + source * self.records
            keys = [here[(source + 1 + n) % SLOTS] for n in range(self.records)]
            laps = np.full(self.records, int(self.graph == CYCLE), np.int64)
            columns = {"key": np.array(keys, np.int64), "time": ids, "id": ids, "laps": laps}
            batches.append(Batch(columns))
        return batches

    def job(self, protocol: CheckpointProtocol) -> Job:
        """The job that is searched, under the first guarantee of a protocol.

        Here nobody judges what was lost, so a protocol that may lose something promises nothing.
        """
        settings = Settings(batch_max_records=1, batch_growth=1, linger_ms=0)
        options = Options(interval_ms=10, deadline_ms=10, align_timeout_ms=1)
        name = f"{self.graph}-{protocol.name}"
        deployment = deploy(_flow(self), SLOTS, lean=True)
        # A run builds every task, and there are many runs: to copy an operator is quicker than to build it.
        plans = {
            task: replace(plan, operator=partial(deepcopy, plan.operator()))
            for task, plan in deployment.plans.items()
        }
        deployment = replace(deployment, plans=plans)
        promised = protocol.guarantees[0]
        guarantee = Guarantee.NOTHING if promised is Guarantee.BOUNDED_LOSS else promised
        return Job(name, deployment, protocol, options, guarantee, settings)

    def judge(
        self,
        output: Mapping[str, Batch],
        state: Mapping[str, Mapping[str, Batch]],
        level: Guarantee,
    ) -> list[str]:
        """What is wrong with what came out, in sentences."""
        findings = Problems(level)
        records = self.inputs()
        if self.graph == CHAIN:
            judge_counts(findings, records, output.get("counts"), ("key",), _count_of, _record)
        else:
            judge_numbers(findings, _visits(records), _told(state), "key", "count", _count_of)
            _judge_finished(findings, records, output.get("finished"))
        return [f"{p.kind} {p.record}: {p.because}" for p in findings.problems]


def _count_of(key: int) -> str:
    return f"count of key {key}"


def _record(number: int) -> str:
    return f"record {number}"


@cache
def _keys() -> tuple[int, ...]:
    """A key for each slot."""
    tried = np.arange(64, dtype=np.int64)
    targets = targets_of(Batch({"key": tried}), ("key",), SLOTS).tolist()
    return tuple(targets.index(slot) for slot in range(SLOTS))


def _flow(small: Small) -> Dataflow:
    flow = Dataflow(small.graph)
    stream = flow.source(ListIngress([[batch] for batch in small.inputs()]), name="records")
    if small.graph == CHAIN:
        stream.key_by("key").apply(Visits, name="count").sink("counts")
        return flow
    loop = flow.feedback(BACK)
    visits = stream.key_by("key").apply(Visits, name="visits", ports={BACK: loop})
    visits.output(BACK).key_by("key").feed(loop)
    visits.sink("finished")
    return flow


class Visits(Operator):
    """Counts visits per key, and sends a record that has a lap left on to the other key."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def process(self, port: str, batch: Batch) -> Outputs:
        """Count each record; send those with laps to go around again, and put the others out."""
        counts = []
        for key in batch["key"].tolist():
            self._counts[key] = self._counts.get(key, 0) + 1
            counts.append(self._counts[key])
        goes_on = batch["laps"] > 0
        finished = batch.with_columns(count=np.array(counts, np.int64)).take(~goes_on)
        around = batch.take(goes_on)
        keys = np.array([_other(key) for key in around["key"].tolist()], np.int64)
        around = around.with_columns(key=keys, laps=around["laps"] - 1)
        return tuple(out for out in ((OUT, finished), (BACK, around)) if len(out[1]))

    def capture(self, *, full: bool) -> Capture:
        """Capture all counts, never a delta: there are few."""
        pairs = np.array(sorted(self._counts.items()), np.int64).reshape(-1, 2)
        return Capture(
            True, {"counts": Batch({"key": pairs[:, 0].copy(), "count": pairs[:, 1].copy()})}
        )

    def restore(self, captures: Sequence[Capture]) -> None:
        """Take the counts from the last capture."""
        counts = captures[-1].parts["counts"]
        self._counts = dict(zip(counts["key"].tolist(), counts["count"].tolist(), strict=True))


def _other(key: int) -> int:
    here = _keys()
    return here[(here.index(key) + 1) % SLOTS]


def _visits(records: Sequence[Batch]) -> Batch:
    """Every visit that a record makes: at its key, and one lap later at the other one."""
    keys = [key for batch in records for key in batch["key"].tolist()]
    return Batch({"key": np.array(keys + [_other(key) for key in keys], np.int64)})


def _told(state: Mapping[str, Mapping[str, Batch]]) -> Batch:
    """The last count of each key, as the counts 1..k that led to it."""
    counts = state["visits"]["counts"]
    if not len(counts):
        return Batch({"key": np.zeros(0, np.int64), "count": np.zeros(0, np.int64)})
    rows = [
        (key, n + 1)
        for key, count in zip(counts["key"].tolist(), counts["count"].tolist(), strict=True)
        for n in range(count)
    ]
    columns = np.array(rows, np.int64)
    return Batch({"key": columns[:, 0].copy(), "count": columns[:, 1].copy()})


def _judge_finished(findings: Problems, records: Sequence[Batch], found: Batch | None) -> None:
    came = [] if found is None or not len(found) else found["id"].tolist()
    for number in (number for batch in records for number in batch["id"].tolist()):
        times = came.count(number)
        because = f"published {plural(times, 'time')} by the sink"
        if times < 1:
            findings.lack("missing", _record(number), because)
        elif times > 1:
            findings.excess("duplicate", _record(number), because)
