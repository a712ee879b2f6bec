"""Exhaustively in the small: every protocol holds, and what is broken is found with a short story."""

import json
import re

import pytest
from sabotage import BUGS

from benchmarks.simulator.abs_published import COMPARED, PUBLISHED
from snapline.errors import UsageError
from snapline.ids import first_checkpoint
from snapline.protocols import PROTOCOLS
from snapline.sim.exhaustive.course import SteppedRun
from snapline.sim.exhaustive.lanes import Lane, Past
from snapline.sim.exhaustive.order import Deviation
from snapline.sim.exhaustive.recorded import RecordedCounterexample
from snapline.sim.exhaustive.search import Counterexample, Search, shortened
from snapline.sim.exhaustive.small import CHAIN, CYCLE, GRAPHS, Small
from snapline.sim.exhaustive.story import tell, unusual
from snapline.sim.run import Violation

RUNS = 30
"""So many runs of each space with every change: spread over all that leave the usual order once."""

SPACES = [
    (name, graph)
    for name, protocol in PROTOCOLS.items()
    for graph in GRAPHS
    if protocol.cycles or graph != CYCLE
]
HELD = Deviation("hold", Lane("take", "slot/0.1", "records/0>visits/0"))


@pytest.mark.parametrize(("name", "graph"), SPACES)
def test_every_protocol_holds_in_the_small(name, graph):
    covered = Search(Small(graph), PROTOCOLS[name], lambda seen: seen.runs < RUNS).run()
    assert covered.counterexample is None
    assert (covered.complete, covered.runs) == (0, RUNS)
    assert covered.ends > 0
    assert str(covered).startswith("all runs with up to 0 deviations, and ")


# ABS, algorithm 2.


@pytest.fixture(scope="module")
def published():
    """The shortest counterexample to the published algorithm, with one record for each source."""
    small = Small(CYCLE, 1)
    return small, Search(small, PUBLISHED, lambda seen: True, deviations_max=1).run()


def test_abs_2_as_published_waits_for_ever_when_a_back_edge_comes_first(published):
    small, covered = published
    found = covered.counterexample
    assert found.violation.name == "run_ends_by_itself"
    [(kind, held)] = found.deviations  # a regular input is slow, and a back edge is not
    assert (kind, held.kind, held.name.partition("/")[0]) == ("hold", "take", "records")
    shortest = shortened(small, PUBLISHED, found)
    assert shortest.violation.name == "run_ends_by_itself"
    assert len(shortest.steps) <= 25
    told = [line.text for line in tell(small, PUBLISHED, shortest)]
    late = held.name.partition(">")[2]  # the task that never takes its checkpoint
    [early] = [n for n, text in enumerate(told) if re.match(f"{late} takes MARKER .*#back", text)]
    assert re.match(f"{late} takes MARKER 1.1 of {held.name}; {late} blocks", told[-1])
    assert early < len(told) - 1
    assert not [text for text in told if f"{late} takes CHECKPOINT" in text]


def test_the_corrected_algorithm_has_no_counterexample_where_the_published_one_has(published):
    small, covered = published
    corrected = PROTOCOLS["aligned-cyclic"]
    found = shortened(small, PUBLISHED, covered.counterexample)
    recorded = RecordedCounterexample(corrected.name, small, found.steps, found.deviations)
    assert recorded.again(corrected) is None
    same = Search(small, corrected, lambda seen: True, deviations_max=1).run()
    assert (same.complete, same.counterexample) == (1, None)
    assert str(same) == "all runs with up to 1 deviation"


def test_abs_2_with_the_comparison_mended_alone_saves_what_was_sent_behind_the_marker():
    small = Small(CYCLE)
    covered = Search(small, COMPARED, lambda seen: seen.counterexample is None).run()
    assert covered.counterexample.violation.name == "line_is_consistent"
    assert [deviation.kind for deviation in covered.counterexample.deviations] == ["hold"]
    assert "#back" in covered.counterexample.violation.story


# Deliberate bugs.


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("blocked channels are read", []),
        ("go before all have acknowledged", []),
        ("counted before an earlier one", ["hold"]),
        ("overtaken output forgotten", ["fire"]),
        ("source offset not restored", ["crash"]),
    ],
)
def test_a_deliberate_bug_is_found_with_as_few_deviations_as_it_needs(name, kinds, monkeypatch):
    [bug] = [bug for bug in BUGS if bug.name == name]
    protocol = PROTOCOLS[bug.protocol]
    small = Small(CYCLE if bug.workload == "nhop" else CHAIN)
    with monkeypatch.context() as patch:
        bug.apply(patch)
        covered = Search(small, protocol, lambda seen: seen.counterexample is None).run()
        found = covered.counterexample
        assert [deviation.kind for deviation in found.deviations] == kinds
        assert found.violation.name in bug.caught_by
        recorded = RecordedCounterexample(protocol.name, small, found.steps, found.deviations)
        assert recorded.again(protocol).violation == found.violation
    assert recorded.again(protocol) is None


# How a state is recognised.


def course():
    return SteppedRun.begin(Small(CHAIN), Small(CHAIN).job(PROTOCOLS["aligned"]))


def state_after(*steps):
    begun = course()
    begun.follow([Lane.parse(step) for step in steps])
    assert len(begun.taken) == len(steps)
    return begun.state


READ_0, READ_1 = "read slot/0.1 records/0", "read slot/1.1 records/1"


def test_what_makes_no_difference_leads_to_the_same_state():
    assert state_after(READ_0, READ_1) == state_after(READ_1, READ_0)


def test_what_makes_a_difference_leads_to_another_state():
    crash = "crash slot/0.1"
    assert len({state_after(READ_0), state_after(READ_1), state_after(crash)}) == 3
    assert state_after(READ_0, crash) != state_after(crash)
    link = ("link slot/0.1 slot/1.1", "take slot/0.1 records/1>counts/0")
    own = ("take slot/0.1 records/0>counts/0",)
    reads = (READ_0, READ_0, READ_1)
    assert state_after(*reads, *link, *own) != state_after(*reads, *own, *link)
    assert state_after(*reads, *link) != state_after(*reads, link[0], *own)


def test_after_a_rollback_only_what_was_saved_matters():
    begun = ["crash slot/0.1", "detect coordinator slot/0.1", "launch coordinator slot/0.2"]
    restored = [*begun, "store coordinator decision@2", "order slot/1.1"]
    assert state_after(*begun) != state_after(READ_1, *begun)
    assert state_after(*restored) == state_after(READ_1, *restored)


def test_the_past_of_a_part_has_an_order_unless_it_gathers():
    one, other = Past(), Past()
    for event in (1, 2):
        one.goes_through("a", event)
        other.goes_through("a", 3 - event)
    assert one.total != other.total
    one, other = Past(), Past()
    for event in (1, 2):
        one.gathers("a", event)
        other.gathers("a", 3 - event)
    assert one.total == other.total != Past().total
    one.ends("a")
    assert one.total == Past().total


# Words and files.


def test_a_counterexample_is_read_back_from_its_file_as_it_was():
    steps = (Lane.parse(READ_0), Lane.parse("crash slot/0.1"), Lane("order", "slot/1.1"))
    recorded = RecordedCounterexample("aligned", Small(CYCLE, 3), steps, (HELD,))
    found = Counterexample(Violation("line_is_complete", "the line is not"), steps, (HELD,))
    assert RecordedCounterexample.from_json(json.dumps(recorded.to_json(found))) == recorded


@pytest.mark.parametrize("text", ["", "[]", '{"explore": 2}', '{"explore": 1, "graph": "tree"}'])
def test_a_file_that_is_none_is_refused_with_a_word(text):
    with pytest.raises(UsageError):
        RecordedCounterexample.from_json(text)


def test_deviations_are_told_in_words():
    crash = Deviation("crash", Lane("crash", "slot/1.2"))
    fire = Deviation("fire", Lane("timer", "coordinator", "RoundDeadline@coordinator"))
    link = Deviation("hold", Lane("link", "slot/0.1", "slot/1.1"))
    write = Deviation("hold", Lane("store", "slot/0.1", f"log counts/0@{first_checkpoint(1)}"))
    assert [unusual(one) for one in (crash, fire, link, write, HELD)] == [
        "slot 1 (life 2) crashes",
        "the timer RoundDeadline@coordinator goes off before its turn",
        "held until nothing else can happen: the link from slot 1 to slot 0",
        "held until nothing else can happen: the write of log counts/0 1.1",
        "held until nothing else can happen: slot 0 takes from records/0>visits/0",
    ]
