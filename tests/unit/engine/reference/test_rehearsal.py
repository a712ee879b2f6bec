"""Operators that are captured and restored while they work: whoever forgets something is named."""

import numpy as np
import operators_of_ones_own as own
import pytest
from operators_of_ones_own import summed

import snapline as sl
from snapline.batch import Batch
from snapline.dataflow.deploy import deploy
from snapline.dataflow.operators.operator import Capture, Operator
from snapline.engine.reference.reference import reference_output
from snapline.engine.reference.rehearsal import rehearse
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params

PARAMS = Params(seed=3, partitions=2, records=40, duration_ms=2_400)


def complaint(flow, *, lean=False):
    return rehearse(deploy(flow, 2, lean=lean), 0)[1]


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_operators_of_the_workloads_survive(name):
    lean = name in {"q3", "q12", "sst"}
    deployment = deploy(WORKLOADS[name].build(PARAMS), 2, lean=lean)
    outputs, found = rehearse(deployment, 0)
    assert found is None
    assert outputs == reference_output(deployment, 0)


@pytest.mark.parametrize("lean", [False, True], ids=["apart", "lean"])
@pytest.mark.parametrize("operator", [own.Sum, own.Deltas, own.OtherOrder])
def test_a_right_operator_survives(operator, lean):
    assert complaint(summed(operator), lean=lean) is None


@pytest.mark.parametrize("lean", [False, True], ids=["apart", "lean"])
@pytest.mark.parametrize(
    ("operator", "because"),
    [
        (own.NoCapture, "does not go on as before once it was restored: it should put out (key="),
        (own.EmptyCapture, "does not go on as before once it was restored"),
        (own.NoRestore, "does not go on as before once it was restored"),
        (
            own.HotKeyForgotten,
            "does not go on as before once it was restored: it should put out (key=1,",
        ),
        (own.SmallNumbers, "does not go on as before once it was restored"),
        (own.LastDeltaOnly, "does not go on as before once it was restored"),
        (own.FullOnly, "does not go on as before once it was restored"),
        (own.ChangesNotReset, "asked for a full capture, and gives a delta"),
        (own.CaptureEmpties, "does not go on as before once it was captured"),
        (own.Array, "changes what it has captured afterwards"),
        (
            own.ReadOnlyArray,
            "raises ValueError: assignment destination is read-only once it was restored",
        ),
        (own.RaisesInCapture, "raises ValueError: too many keys when it is captured"),
        (own.RaisesInRestore, "raises KeyError: 'totals' when it is restored"),
        (own.LeavesInRestore, "raises SystemExit: 0 when it is restored"),
        (own.SpeechlessInCapture, "Speechless: an exception that cannot be put into words"),
        (own.Objects, "captures what cannot be stored"),
        (own.Clocked, "does not go on as before once it was restored: it should put out (key=-1"),
    ],
)
def test_a_wrong_one_is_named_and_what_it_does_is_said(operator, because, lean):
    if lean and operator is own.ChangesNotReset:
        because = "captur"  # a chain gives a full capture only if all of its members do
    if lean and operator is own.Objects:
        because = "capture returned"  # a chain looks at what its members return
    found = complaint(summed(operator), lean=lean)
    assert found.certain
    assert found.operator == "operator 'totals'"
    assert because in found.because


@pytest.mark.parametrize("tenth", range(10))
def test_who_forgets_in_a_tenth_of_the_run_only_is_found_wherever_that_lies(monkeypatch, tenth):
    monkeypatch.setattr(own.LateForgotten, "span", (500 * tenth, 500 * tenth + 500))
    flow = summed(own.LateForgotten, seconds=5)
    found = complaint(flow) or complaint(flow, lean=True)
    assert found.operator == "operator 'totals'"
    assert "does not go on as before once it was restored" in found.because


def test_only_the_guilty_one_of_several_is_named():
    flow = sl.Dataflow("several")
    sums = flow.source(own.numbers()).key_by("key").apply(own.Sum, name="right")
    doubled = sums.map(lambda batch: batch.with_columns(value=batch["total"] % 7), name="map")
    doubled.key_by("key").apply(own.HotKeyForgotten, name="wrong").key_by("key").count().sink("out")
    assert complaint(flow.bind(2, 2_000)).operator == "operator 'wrong'"


def test_of_a_chain_the_operators_that_may_be_guilty_are_named():
    flow = sl.Dataflow("chained")
    sums = flow.source(own.numbers()).apply(own.NoRestore, name="totals")
    sums.map(lambda batch: batch.with_columns(twice=batch["total"] * 2), name="double").sink("out")
    found = complaint(flow.bind(2, 2_000), lean=True)
    assert found.operator == "operator 'totals' or 'double'"


def test_an_operator_with_several_inputs_is_found_out():
    flow = sl.Dataflow("two inputs")
    numbers = flow.source(own.numbers(), name="numbers")
    few = flow.source(own.numbers(rate=40), name="few").key_by("key")
    numbers.key_by("key").apply(own.Late, name="known", ports={"known": few}).sink("out")
    assert complaint(flow.bind(2, 2_000)).operator == "operator 'known'"


def test_an_operator_on_a_cycle_is_found_out():
    class Rounds(Operator):
        """Sends a record back until it has been seen three times."""

        def __init__(self):
            self.seen = {}

        def process(self, port, batch):
            for key in batch["n"].tolist():
                self.seen[key] = self.seen.get(key, 0) + 1
            done = np.array([self.seen[key] >= 3 for key in batch["n"].tolist()])
            return (("out", batch.take(done)), ("again", batch.take(~done)))

    flow = sl.Dataflow("cycle")
    loop = flow.feedback("again")
    numbers = flow.source(sl.generated(lambda n: {"n": n}, rate=200))
    rounds = numbers.key_by("n").apply(Rounds, name="rounds", ports={"back": loop})
    rounds.output("again").key_by("n").feed(loop)
    rounds.sink("out")
    assert complaint(flow.bind(2, 2_000)).operator == "operator 'rounds'"


def test_what_is_forgotten_shows_although_nothing_comes_out_of_it():
    """The filter behind the operator hides all that it does wrong here, but not elsewhere."""
    flow = sl.Dataflow("hidden")
    sums = flow.source(own.numbers()).key_by("key").apply(own.NoRestore, name="totals")
    sums.filter(lambda batch: batch["time"] < 0).sink("out")
    assert complaint(flow.bind(2, 2_000)).operator == "operator 'totals'"


def test_who_differs_once_and_not_again_at_the_same_moments_cannot_be_judged(monkeypatch):
    monkeypatch.setattr(own.Rarely, "left", 40)
    found = complaint(summed(own.Rarely))
    assert "does not do the same twice" in found.because
    assert not found.certain


@pytest.mark.parametrize("what", ["class", "function", "instance", "dice"])
def test_what_does_not_do_the_same_twice_cannot_be_judged(what):
    own.InTheClass.shared.clear()
    flow = sl.Dataflow("not twice")
    numbers = flow.source(own.numbers())
    seen, one, dice = [], own.Sum(), np.random.default_rng(1)

    def counted(batch):
        seen.append(len(batch))
        return batch.with_columns(before=np.full(len(batch), sum(seen)))

    def thrown(batch):
        return batch.with_columns(dice=dice.integers(0, 1 << 30, len(batch)))

    match what:
        case "class":
            steps = numbers.key_by("key").apply(own.InTheClass, name="step")
        case "function":
            steps = numbers.map(counted, name="step")
        case "instance":
            steps = numbers.key_by("key").apply(lambda: one, name="step")
        case "dice":
            steps = numbers.map(thrown, name="step")
    steps.sink("out")
    found = complaint(flow.bind(2, 2_000))
    assert (found.operator, found.certain) == ("operator 'step'", False)
    assert "does not do the same twice with the same input" in found.because


def test_strings_lists_and_fractions_survive():
    class Texts(Operator):
        """All words and the mean of the numbers so far."""

        def __init__(self):
            self.words, self.sum = [], 0.0

        def process(self, port, batch):
            self.words += [f"w{n}" for n in batch["value"].tolist()]
            self.sum += float(batch["value"].sum()) / 3
            last = Batch.of(
                word=self.words[-3:], sum=[self.sum] * 3, places=[[len(self.words)], [], [1, 2]]
            )
            return (("out", last.slice(0, len(self.words[-3:]))),)

        def capture(self, *, full):
            state = {"words": Batch.of(w=self.words), "sum": Batch.of(sum=[self.sum])}
            return Capture(True, state)

        def restore(self, captures):
            self.words = captures[-1].parts["words"].to_pydict()["w"]
            self.sum = captures[-1].parts["sum"]["sum"].tolist()[0]

    assert complaint(summed(Texts)) is None
