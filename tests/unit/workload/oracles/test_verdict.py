"""The comparison of what came out with what is right."""

import plain_verdict
import pytest

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.workload.oracles.count_verdict import judge_counts
from snapline.workload.oracles.table_verdict import judge_table
from snapline.workload.oracles.verdict import LIMIT, Problems, judge_rows, rows_of

NOTHING, BOUNDED, MOST, LEAST, EXACTLY = Guarantee
ALL = [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]

EXPECTED = {1: "a", 2: "b"}


def kinds(level, rows, optional=None):
    """Judged as a table, and the same in the plain form."""
    may = optional or {}
    findings, plain = Problems(level), Problems(level)
    judge_rows(plain, EXPECTED, rows, "row {}".format, may)
    right, found, allowed = map(table, (EXPECTED.items(), rows, may.items()))
    judge_table(findings, [right], found, ("key",), ("value",), "row {}".format, [allowed])
    assert told(findings) == told(plain)
    return told(findings)


def table(pairs):
    pairs = list(pairs)
    return Batch.of(key=[key for key, _ in pairs], value=[value for _, value in pairs])


def told(findings):
    return [(problem.kind, problem.record) for problem in findings.problems]


@pytest.mark.parametrize("level", ALL)
def test_what_is_right_in_any_order_is_no_problem(level):
    assert kinds(level, [(2, "b"), (1, "a")]) == []


@pytest.mark.parametrize(
    ("rows", "problem", "forbidden_at"),
    [
        ([(1, "a")], ("missing", "row 2"), [NOTHING, BOUNDED, LEAST, EXACTLY]),
        ([(1, "a"), (2, "b"), (2, "b")], ("duplicate", "row 2"), [NOTHING, BOUNDED, MOST, EXACTLY]),
        ([(1, "a"), (2, "b"), (3, "c")], ("invented", "row 3"), [NOTHING, BOUNDED, MOST, EXACTLY]),
        ([(1, "a"), (2, "x")], ("wrong", "row 2"), ALL),
    ],
)
def test_every_level_forbids_what_it_should(rows, problem, forbidden_at):
    for level in ALL:
        assert kinds(level, rows) == ([problem] if level in forbidden_at else []), level


def test_a_wrong_copy_beside_the_right_one_lacks_nothing():
    rows = [(1, "a"), (2, "b"), (2, "x")]
    assert kinds(LEAST, rows) == []
    assert kinds(EXACTLY, rows) == [("wrong", "row 2"), ("duplicate", "row 2")]


def test_what_is_optional_may_come_once_and_only_right():
    right = [(1, "a"), (2, "b")]
    assert kinds(EXACTLY, [*right, (3, "c")], {3: "c"}) == []
    assert kinds(EXACTLY, [*right, (3, "c"), (3, "c")], {3: "c"}) == [("duplicate", "row 3")]
    assert kinds(EXACTLY, [*right, (3, "x")], {3: "c"}) == [("wrong", "row 3")]
    assert kinds(LEAST, [*right, (3, "x")], {3: "c"}) == []


def test_of_many_that_are_optional_and_wrong_the_first_to_come_out_are_told():
    many = range(10, 100)
    wrong = [(1, "a"), (2, "b"), *((n, "x") for n in reversed(many))]
    told_of = kinds(EXACTLY, wrong, dict.fromkeys(many, "c"))
    assert told_of == [("wrong", f"row {n}") for n in range(99, 99 - LIMIT, -1)]


def test_a_verdict_stops_at_its_limit():
    assert len(kinds(EXACTLY, [(n, "z") for n in range(10, 100)])) == LIMIT


NAMES = "klm"
INPUTS = {"k": [(7, "r7"), (8, "r8"), (8, "r8b")], "l": [(9, "r9")]}
RECORDS = ["r7", "r8", "r8b", "r9"]
COUNTED = [("l", 1, 9), ("k", 1, 8), ("k", 3, 7), ("k", 2, 8)]


def counted(level, rows):
    """Judged in columns, and the same in the plain form."""
    plain, findings = Problems(level), Problems(level)
    plain_verdict.judge_counts(plain, INPUTS, rows, "key {}".format)
    records = Batch.of(key=[0, 0, 0, 1], time=[7, 8, 8, 9], id=[0, 1, 2, 3])
    key, count, time = zip(*rows, strict=True)
    found = Batch.of(key=[NAMES.index(name) for name in key], count=count, time=time)
    halves = [records.slice(0, 2), records.slice(2, 4)]
    judge_counts(
        findings, halves, found, ("key",), lambda k: f"key {NAMES[k]}", RECORDS.__getitem__
    )
    assert findings.problems == plain.problems
    return told(findings)


@pytest.mark.parametrize("level", ALL)
def test_which_record_got_which_number_is_free(level):
    assert counted(level, COUNTED) == []


@pytest.mark.parametrize(
    ("rows", "lacking", "excessive"),
    [
        (COUNTED[1:], [("missing", "key l"), ("missing", "r9")], []),
        (COUNTED[:3], [("missing", "r8 or r8b")], []),
        ([*COUNTED, ("k", 4, 7)], [], [("wrong", "key k"), ("duplicate", "r7")]),
        ([*COUNTED, ("l", 1, 9)], [], [("duplicate", "key l"), ("duplicate", "r9")]),
        ([*COUNTED, ("m", 1, 6)], [], [("invented", "key m at 6 ms")]),
        ([*COUNTED, ("k", 4, 6)], [], [("wrong", "key k"), ("invented", "key k at 6 ms")]),
        ([("l", 0, 9), *COUNTED[1:]], [("missing", "key l")], [("wrong", "key l")]),
        ([("l", 2, 9), *COUNTED[1:]], [], [("wrong", "key l")]),
    ],
)
def test_counts_are_held_against_keys_and_records(rows, lacking, excessive):
    assert counted(LEAST, rows) == lacking
    assert counted(MOST, rows) == excessive
    assert counted(EXACTLY, rows) == lacking + excessive
    assert counted(NOTHING, rows) == lacking + excessive


def test_a_record_counted_twice_in_the_place_of_another_is_seen():
    rows = [("l", 1, 9), ("k", 1, 8), ("k", 3, 8), ("k", 2, 8)]
    assert counted(EXACTLY, rows) == [("missing", "r7"), ("duplicate", "r8 or r8b")]


def test_a_sink_that_wrote_nothing_has_no_rows():
    assert rows_of(None, "a") == []
    assert rows_of(Batch({}, 0), "a") == []
    assert rows_of(Batch.of(a=[[1, 2]], b=["x"]), "b", "a") == [("x", (1, 2))]
