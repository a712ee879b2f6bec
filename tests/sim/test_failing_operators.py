"""Code of a dataflow that raises, or returns what cannot be: who, which line, and on what input."""

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from sim_runs import Case, simulate

import snapline as sl
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.dataflow.operators.fold import Count
from snapline.engine.job import Job, Settings
from snapline.errors import GraphError, OperatorFailed
from snapline.protocols import PROTOCOLS
from snapline.sim.watch.watched import WatchedWorld
from snapline.sim.world.costs import Costs


def failure(build, *, lean=True, rule=lambda n: {"number": n, "key": n % 5}, interval_ms=200):
    """What comes of a flow that fails, in the simulator, under its real deployment."""
    flow = sl.Dataflow("mine")
    build(flow.source(sl.generated(rule, rate=50), name="numbers"))
    protocol = PROTOCOLS["aligned"]
    job = Job(
        "mine",
        deploy(flow.bind(2, 1_000), 2, lean=lean),
        protocol,
        Options(interval_ms=interval_ms),
        protocol.guarantees[0],
        Settings(batch_max_records=10, linger_ms=40),
    )
    world = WatchedWorld(job, Costs.draw(random.Random(1)), keep_journal=False)
    with pytest.raises(OperatorFailed) as raised:
        world.run(20_000_000)
    return raised.value


class Own(sl.Operator):
    """An operator whose `process` answers what it is told to."""

    def __init__(self, answer):
        self.answer = answer

    def process(self, port, batch):  # PROCESS
        return self.answer(batch)


def here(mark):
    """The line of this file that ends in a mark."""
    lines = Path(__file__).read_text().splitlines()
    (line,) = [n for n, text in enumerate(lines, 1) if text.rstrip().endswith(f"# {mark}")]
    return f"{__file__}, line {line}"


def raises(batch):
    return {"number": 1}["colour"]  # RAISES


def parses(batch):
    return json.loads("no")  # PARSES


def returns(value):
    return lambda batch: value(batch) if callable(value) else value  # RETURNS


BATCH = {"number": np.arange(3), "key": np.arange(3)}


class Speechless(Exception):
    """Fails in saying what it is."""

    def __str__(self):
        raise RuntimeError("no words")


class Tacit(Exception):
    """Ends the process that asks what it is."""

    def __str__(self):
        sys.exit(0)


class Stop(BaseException):
    """Is no Exception, as asyncio's CancelledError is none."""


def raising(error):
    def function(batch):
        raise error

    return function


@pytest.mark.parametrize(
    ("build", "operator", "cause", "code"),
    [
        (lambda s: s.map(raises).sink("c"), "map", "KeyError: 'colour'", "RAISES"),
        (lambda s: s.map(parses).sink("c"), "map", "JSONDecodeError: Expecting", "PARSES"),
        (lambda s: s.map(returns(None), name="m").sink("c"), "m", "returned None", "RETURNS"),
        (lambda s: s.filter(raises).sink("c"), "filter", "KeyError", "RAISES"),
        (
            lambda s: s.filter(returns(lambda b: b["number"] % 2)).sink("c"),
            "filter",
            "one bool for each",
            "RETURNS",
        ),
        (lambda s: s.filter(returns(True)).sink("c"), "filter", "one bool for each", "RETURNS"),
        (lambda s: s.map_records(raises).sink("c"), "map-records", "KeyError", "RAISES"),
        (lambda s: s.map_records(returns(7)).sink("c"), "map-records", "returned 7", "RETURNS"),
        (
            lambda s: s.map_records(returns([{"a": 1}, {"b": 1}])).sink("c"),
            "map-records",
            "records with the fields a, and one with b",
            "RETURNS",
        ),
        (
            lambda s: s.map_records(returns({"a": None})).sink("c"),
            "map-records",
            "column 'a' holds object values",
            "RETURNS",
        ),
        (
            lambda s: s.map(returns(sl.Batch({**BATCH, "key": np.arange(2)}))).sink("c"),
            "map",
            "a Batch of 3 records whose column 'key' has 2 values",
            "RETURNS",
        ),
        (
            lambda s: s.map(returns(sl.Batch({"number": [1, 2]}))).sink("c"),
            "map",
            "whose column 'number' is list [1, 2], not a column",
            "RETURNS",
        ),
        (
            lambda s: s.apply(lambda: Own(returns(None)), name="own").sink("c"),
            "own",
            "process returned None: it must return pairs",
            "PROCESS",
        ),
        (
            lambda s: s.map(lambda b: sys.exit("enough"), name="leaves").sink("c"),
            "leaves",
            "SystemExit: enough",
            None,
        ),
        (
            lambda s: s.map(raising(Speechless()), name="speechless").sink("c"),
            "speechless",
            "Speechless: an exception that cannot be put into words",
            None,
        ),
        (
            lambda s: s.map(raising(Tacit()), name="tacit").sink("c"),
            "tacit",
            "Tacit: an exception that cannot be put into words",
            None,
        ),
        (lambda s: s.map(raising(Stop("now")), name="stops").sink("c"), "stops", "Stop: now", None),
        (
            lambda s: s.map(returns(sl.Batch({1: np.arange(3)}))).sink("c"),
            "map",
            "a Batch with a column called 1: a name is a text",
            "RETURNS",
        ),
        (
            lambda s: s.map(returns(sl.Batch({"\udc80": np.arange(3)}))).sink("c"),
            "map",
            "a Batch with a column called '\\udc80'",
            "RETURNS",
        ),
        (
            lambda s: s.map(returns(sl.Batch({"wide": np.zeros(3, np.longdouble)}))).sink("c"),
            "map",
            "column 'wide' holds float128 values",
            "RETURNS",
        ),
        (
            lambda s: s.map(returns(sl.Batch({"s": np.array(["a"], "T")}))).sink("c"),
            "map",
            "column 's' holds StringDType() values",
            "RETURNS",
        ),
        (
            lambda s: s.apply(lambda: Own(lambda b: [b]), name="own").sink("c"),
            "own",
            "among its outputs: each must be a pair",
            "PROCESS",
        ),
        (
            lambda s: s.apply(lambda: Own(lambda b: [("out", b["key"])]), name="own").sink("c"),
            "own",
            "where a Batch should be",
            "PROCESS",
        ),
        (
            lambda s: s.key_by("key").fold({"sum": 0}, lambda old, b: None, name="f").sink("c"),
            "f",
            "the step returned None",
            None,
        ),
        (
            lambda s: s.map(lambda b: b.select("number"), name="m").key_by("key").count().sink("c"),
            "m",
            "its output has no column 'key' to key by: it has number",
            "",
        ),
    ],
)
@pytest.mark.parametrize("lean", [True, False], ids=["chained", "apart"])
def test_who_made_the_mistake_is_named_with_the_line_and_the_input(
    build, operator, cause, code, lean
):
    failed = failure(build, lean=lean)
    assert failed.operator == operator
    assert cause in failed.cause
    if code is not None:
        assert failed.code == (here(code) if code else "")
    if code and lean:
        assert failed.where == "records 0 to 1 of partition 0 of 'numbers'"
    elif code:
        assert failed.where == f"message 1 of numbers/0>{operator}/0"


def test_a_source_that_raises_is_named_with_its_partition_and_offsets():
    failed = failure(
        lambda s: s.key_by("key").count().sink("c"),
        rule=lambda n: raises(n) if len(n) else {"key": n},
    )
    assert (failed.operator, failed.code) == ("numbers", here("RAISES"))
    assert failed.where.endswith("of partition 0 of 'numbers'")


def test_so_is_one_whose_rule_returns_columns_of_another_length():
    failed = failure(
        lambda s: s.sink("c"), rule=lambda n: {"a": n, "b": n[:1] if len(n) > 1 else n}
    )
    assert failed.operator == "numbers"
    assert "the rule returned a Batch of 25 records whose column 'b' has 1 value" in failed.cause
    assert failed.where.endswith("of partition 0 of 'numbers'")


class Timed(sl.Operator):
    """Fails when something else than a batch is asked of it."""

    uses_time = True
    wrong = ""

    def on_watermark(self, time):
        if self.wrong == "on_watermark":
            raises(None)
        return ()

    def capture(self, *, full):
        if self.wrong == "capture":
            return None
        if self.wrong == "delta":
            return sl.Capture(False, {})
        if self.wrong == "number":
            return sl.Capture(True, {1: sl.Batch({})})
        if self.wrong == "list":
            return sl.Capture(True, [sl.Batch({})])
        return super().capture(full=full)


@pytest.mark.parametrize(
    ("wrong", "cause", "where"),
    [
        ("on_watermark", "KeyError: 'colour'", "the watermark "),
        ("capture", "TypeError: capture returned None where a Capture", "its own state"),
        ("delta", "TypeError: capture returned a delta, and was asked for a full", "its own state"),
        (
            "number",
            "TypeError: capture returned a part whose name is int 1, not a",
            "its own state",
        ),
        ("list", "TypeError: capture returned list [Batch(0 x )] where a dict", "its own state"),
    ],
)
@pytest.mark.parametrize("lean", [True, False], ids=["chained", "apart"])
def test_so_is_whoever_fails_at_a_watermark_or_a_snapshot(monkeypatch, wrong, cause, where, lean):
    monkeypatch.setattr(Timed, "wrong", wrong)
    failed = failure(lambda s: s.apply(Timed, name="timed").sink("c"), lean=lean)
    assert failed.operator == "timed"
    assert failed.cause.startswith(cause)
    assert failed.where.startswith(where)


@pytest.mark.parametrize("error", [SystemExit("enough"), Stop("enough")])
def test_so_is_a_factory_or_a_source_that_wants_to_end_the_process(error):
    flow = sl.Dataflow("mine")
    source = flow.source(sl.generated(numbers_of(None), rate=5))
    source.apply(raising_factory(error), name="o").sink("c")
    with pytest.raises(GraphError, match=f"operator 'o' failed: {type(error).__name__}: enough"):
        deploy(flow.bind(1, 1_000), 1)
    failed = failure(lambda s: s.sink("c"), rule=numbers_of(error))
    assert (failed.operator, failed.cause) == ("numbers", f"{type(error).__name__}: enough")


def numbers_of(error):
    """A rule that raises, if it is told to, as soon as there are records."""

    def rule(numbers):
        if error is not None and len(numbers):
            raise error
        return {"a": numbers}

    return rule


def raising_factory(error):
    def make():
        raise error

    return make


def test_a_factory_that_makes_no_operator_is_told_before_anything_runs():
    flow = sl.Dataflow("mine")
    source = flow.source(sl.generated(lambda n: {"a": n}, rate=5))
    source.apply(lambda: 7, name="seven").sink("c")
    with pytest.raises(
        GraphError, match="operator 'seven' failed: TypeError: its factory returned 7"
    ):
        deploy(flow.bind(1, 1_000), 1)


def test_an_operator_may_be_a_generator():
    """What it yields is taken at once, so that what it raises is its own."""

    class Yielding(sl.Operator):
        def process(self, port, batch):
            yield "out", batch
            raise ValueError("enough")  # ENOUGH

    failed = failure(lambda s: s.apply(Yielding, name="yielding").sink("c"))
    assert (failed.operator, failed.cause) == ("yielding", "ValueError: enough")
    assert failed.code == here("ENOUGH")


def test_in_a_sweep_it_is_a_finding_that_can_be_repeated(monkeypatch):
    monkeypatch.setattr(Count, "process", lambda self, port, batch: raises(batch))
    violation = simulate(Case("aligned", "counting", 3, faults="")).violation
    assert violation is not None
    assert violation.name == "OperatorFailed"
    assert violation.story.startswith("operator 'count' failed: KeyError: 'colour', at ")
