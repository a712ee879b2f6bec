"""Flows of one's own, killed for real, and judged by their reference: who forgets is named."""

import signal
import sys

import numpy as np
from process_slots import lost, public, run_job
from pyspark import cloudpickle

import snapline as sl
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.engine.job import Job, Settings
from snapline.journal.happenings import LineDecided, SlotLost
from snapline.judge.by_reference import judge_by_reference
from snapline.protocols import PROTOCOLS
from snapline.runtime.launch.processes import ProcessSlots

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the slots do not know this file


class Totals(sl.Operator):
    """The sum of each key so far."""

    def __init__(self):
        self.sums = {}

    def process(self, port, batch):
        totals = []
        for key, value in zip(batch["key"].tolist(), batch["value"].tolist(), strict=True):
            self.sums[key] = self.sums.get(key, 0) + value
            totals.append(self.sums[key])
        return (("out", sl.Batch.of(key=batch["key"], time=batch["time"], total=totals)),)

    def capture(self, *, full):
        keys, sums = (np.array(list(part), np.int64) for part in (self.sums, self.sums.values()))
        return sl.Capture(True, {"sums": sl.Batch({"key": keys, "sum": sums})})

    def restore(self, captures):
        sums = captures[-1].parts["sums"]
        self.sums = dict(zip(sums["key"].tolist(), sums["sum"].tolist(), strict=True))


class Forgetful(Totals):
    """Works until the first crash."""

    def capture(self, *, full):
        return sl.Capture(True, {})

    def restore(self, captures):
        pass


class Highest(Totals):
    """The operator of the documentation: the highest value of each key, whenever it rises."""

    def process(self, port, batch):
        rose = []
        for key, value in zip(batch["key"].tolist(), batch["value"].tolist(), strict=True):
            if value > self.sums.get(key, 0):
                self.sums[key] = value
                rose.append((key, value))
        keys, values = np.array(rose, np.int64).reshape(-1, 2).T
        return (("out", sl.Batch({"key": keys, "highest": values})),) if rose else ()


def flow_of(operator):
    flow = sl.Dataflow("totals")
    numbers = flow.source(
        sl.generated(
            lambda n: {"key": np.where(n % 3, n % 50, 1), "value": n * n % 99_991}, rate=800
        )
    )
    kept = numbers.filter(lambda batch: batch["value"] % 5 > 0)
    kept.key_by("key").apply(operator, name="totals").sink("out")
    return flow.bind(2, 2_000)


def killed_run(tmp_path, operator):
    """A run with slots as plain processes, one of them killed behind the third line; and the verdict."""
    flow = flow_of(operator)
    protocol = PROTOCOLS["aligned"]
    deployment = deploy(flow, 2, lean=True)
    options, settings = Options(interval_ms=200), Settings(linger_ms=2)
    job = Job("totals", deployment, protocol, options, protocol.guarantees[0], settings)
    launcher = ProcessSlots()
    seen = []

    def kill(driver, entry):
        seen.append(type(entry.what))
        if isinstance(entry.what, LineDecided) and seen.count(LineDecided) == 3:
            driver.loop.post(lambda: driver.killer.kill(1, signal.SIGKILL))

    driven = run_job(tmp_path, job, launcher, on_event=kill, until=lost)
    launcher.complaints()
    assert SlotLost in seen
    outputs = public(driven.directory, job)
    assert driven.problem is None
    return judge_by_reference(flow, 2, outputs, job.guarantee, saves=True)


def test_a_running_sum_that_forgets_its_state_is_condemned_and_named(tmp_path):
    verdict = killed_run(tmp_path, Forgetful)
    assert verdict.kept == "no"
    assert "operator 'totals': it does not go on as before once it was restored" in verdict.because
    assert set(verdict.guarantees.values()) == {"no"}


def test_the_documented_operator_behind_a_filter_is_judged_by_what_does_not_depend_on_order(
    tmp_path,
):
    verdict = killed_run(tmp_path, Highest)
    assert verdict.kept == "yes", verdict
    assert "the last highest of each key" in verdict.because
    assert set(verdict.guarantees.values()) == {"yes"}
