"""Sweep files: which runs they ask for, in which order, and what is wrong with others."""

from dataclasses import replace

import pytest

from snapline.chaos.faults import parse, start_ms
from snapline.errors import UsageError
from snapline.experiments.drawn_times import at_last, drawn, has_ranges
from snapline.experiments.rates.capacity import BRIEF, SearchForm
from snapline.experiments.sweep_file import SweepCell, read_sweep, sweep_of

BASE = {"flow": "q12", "slots": 1, "duration": "2s"}
MATRIX = {"protocol": ["none", "aligned", "hmnr"], "hot": [0, 20]}


def labels(content):
    return [column.label for column in sweep_of(content).columns]


def test_every_combination_is_a_column_and_the_first_is_there_twice():
    content = {"base": BASE, "matrix": MATRIX, "exclude": [{"protocol": "none", "hot": 20}]}
    assert labels(content) == [
        "protocol=none hot=0",
        "protocol=none hot=0 (again)",
        "protocol=aligned hot=0",
        "protocol=aligned hot=20",
        "protocol=hmnr hot=0",
        "protocol=hmnr hot=20",
    ]
    specs = [column.spec for column in sweep_of(content).columns]
    assert {(spec.flow, spec.slots, spec.duration_ms) for spec in specs} == {("q12", 1, 2_000)}
    assert [spec.hot for spec in specs] == [0, 0, 0, 20, 0, 20]


def test_a_file_without_a_matrix_measures_the_noise_alone():
    assert labels({"base": BASE}) == ["base", "base (again)"]


def test_turns_are_interleaved_and_shuffled_by_the_seed():
    content = {"turns": 5, "seed": 3, "base": BASE, "matrix": MATRIX}
    sweep = sweep_of(content)
    turns = [cell.turn for cell in sweep.cells]
    assert turns == sorted(turns)
    orders = {
        tuple(cell.column.label for cell in sweep.cells if cell.turn == turn)
        for turn in range(1, 6)
    }
    assert len(orders) > 1
    assert {frozenset(order) for order in orders} == {frozenset(labels(content))}
    assert sweep.cells == sweep_of(content).cells
    assert sweep.cells != sweep_of({**content, "seed": 4}).cells


def test_a_key_says_all_that_decides_what_is_measured():
    sweep = sweep_of({"turns": 2, "base": BASE, "matrix": MATRIX})
    keys = {cell.key("code") for cell in sweep.cells}
    assert len(keys) == len(sweep.cells)
    cell = sweep.cells[0]
    assert cell.key("code") == SweepCell(cell.column, cell.turn).key("code")
    assert cell.key("other code") not in keys
    other = replace(cell.column, spec=replace(cell.column.spec, rate=1_999))
    assert replace(cell, column=other).key("code") not in keys


def test_a_rate_may_be_a_share_of_the_capacity():
    content = {"base": {**BASE, "rate": "80% of capacity"}, "matrix": MATRIX}
    columns = sweep_of(content).columns
    assert {column.share for column in columns} == {0.8}
    assert {column.unhurried.hot for column in columns} == {0}
    assert len({column.unhurried for column in columns}) == len(MATRIX["protocol"])
    half = sweep_of({"base": {**BASE, "rate": "50 % of capacity"}, "matrix": MATRIX})
    assert {c.key("x") for c in half.cells}.isdisjoint(c.key("x") for c in sweep_of(content).cells)
    assert {column.share for column in sweep_of({"base": BASE}).columns} == {None}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "say what to run"),
        ({"base": BASE, "matrx": {}}, "there is no 'matrx' in a sweep"),
        ({"base": {**BASE, "protocl": "none"}}, "[base] protocl is no argument of a run"),
        ({"base": {**BASE, "protocol": "non"}}, "protocol"),
        ({"base": {**BASE, "listen": "127.0.0.1"}}, "[base] listen is no argument"),
        ({"base": BASE, "matrix": {"slots": [1]}}, "slots is in [base] and in [matrix]"),
        ({"base": BASE, "matrix": {"hot": 20}}, "[matrix] hot is a list of values"),
        ({"base": BASE, "matrix": {"hot": []}}, "[matrix] hot is a list of values"),
        ({"base": 3}, "[base]"),
        ({"base": BASE, "exclude": {"hot": 1}}, "write [[exclude]]"),
        ({"base": BASE, "exclude": [{"hot": 1}]}, "only what is in [matrix] varies"),
        ({"base": BASE, "matrix": {"hot": [1]}, "exclude": [{"hot": 1}]}, "leaves no column"),
        ({"base": {**BASE, "duration": "forever"}}, "come to an end"),
        ({"base": {**BASE, "rate": "0% of capacity"}}, "more than 0 %"),
        ({"base": {**BASE, "rate": "80% of the capacity"}}, "rate is"),
        ({"base": {"flow": "x.py:flow", "rate": "80% of capacity"}}, "only workloads"),
        ({"base": BASE, "turns": 0}, "turns"),
        ({"base": BASE, "turns": "6"}, "turns"),
        ({"base": BASE, "turns": 1_000, "matrix": {"seed": [*range(50)]}}, "are too many"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(content, said):
    with pytest.raises(UsageError) as refused:
        sweep_of(content)
    assert said in str(refused.value)


def test_a_file_is_read_and_named_in_messages(tmp_path):
    file = tmp_path / "price.toml"
    file.write_text('turns = 2\n[base]\nflow = "q12"\n[matrix]\nprotocol = ["none", "aligned"]\n')
    assert len(read_sweep(file).cells) == 6
    for text, said in (("turns = ", "is no TOML file"), ("turns = 1", "say what to run")):
        file.write_text(text)
        with pytest.raises(UsageError, match=f"price.toml.*{said}"):
            read_sweep(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_sweep(tmp_path / "nowhere.toml")


def test_capacities_are_shared_by_all_that_runs_the_same():
    base = {"flow": "q12", "slots": 2, "rate": "80% of capacity"}
    matrix = {
        "hot": [0, 20],
        "duration": ["10s", "20s"],
        "faults": ["", "kill slot=1 at=5s"],
        "protocol": ["none", "aligned"],
        "options": [{"batch": 100}, {"batch": 500}],
    }
    columns = sweep_of({"base": base, "matrix": matrix}).columns
    assert len({column.capacity_key("code") for column in columns}) == 2 * 2
    brief = sweep_of({"base": base, "capacity": {"tries": 1}}).columns[0]
    usual = sweep_of({"base": base}).columns[0]
    bare = sweep_of({"base": base, "launcher": "processes"}).columns[0]
    assert len({each.capacity_key("code") for each in (brief, usual, bare)}) == 3


def test_a_file_says_how_thoroughly_capacities_are_searched_for():
    assert sweep_of({"base": BASE}).columns[0].search == SearchForm()
    said = {"step": "10%", "tries": 1, "window": "8s"}
    assert {c.search for c in sweep_of({"base": BASE, "capacity": said}).columns} == {BRIEF}


def test_plain_processes_may_be_many_more_than_there_are_cores():
    content = {"launcher": "processes", "base": {**BASE, "slots": 50}}
    sweep = sweep_of(content)
    assert sweep.launcher == "processes"
    assert {(column.launcher, column.spec.oversubscribe) for column in sweep.columns} == {
        ("processes", True)
    }
    on_spark = sweep_of({"base": {**BASE, "slots": 50, "oversubscribe": True}})
    assert on_spark.launcher == "spark"
    keys = [{cell.key("code") for cell in each.cells} for each in (sweep, on_spark)]
    assert keys[0].isdisjoint(keys[1])


FAULTY = {
    "turns": 20,
    "base": {**BASE, "slots": 2, "faults": "kill slot=1 at=8s..+interval; kill slot=0 at=20s..25s"},
    "matrix": {"protocol": ["aligned", "hmnr"], "interval": ["1s", "4s"]},
}


def test_times_of_faults_are_drawn_for_every_turn_and_are_the_same_in_all_columns():
    sweep = sweep_of(FAULTY)
    shares: dict[int, set[tuple[float, float]]] = {}
    for cell in sweep.cells:
        first, second = (start_ms(fault) for fault in parse(cell.spec.faults))
        interval_ms = cell.column.spec.interval_ms
        assert 8_000 <= first <= 8_000 + interval_ms
        assert 20_000 <= second <= 25_000
        share = round((first - 8_000) / interval_ms, 2)
        shares.setdefault(cell.turn, set()).add((share, second))
    assert all(len({second for _, second in each}) == 1 for each in shares.values())
    assert all(max(each)[0] - min(each)[0] <= 0.011 for each in shares.values())
    times = sorted(second for ((_, second), *_) in map(sorted, shares.values()))
    assert len(set(times)) > 15
    assert times[0] < 22_000 < 23_000 < times[-1]


def test_the_draw_depends_on_seed_and_turn_alone():
    def faults(**other):
        return [cell.faults for cell in sweep_of({**FAULTY, **other}).cells]

    assert faults() == faults()
    assert set(faults(seed=2)).isdisjoint(faults(seed=3))
    # More turns, or columns, change nothing in those that are there.
    fewer = {(cell.turn, cell.faults) for cell in sweep_of({**FAULTY, "turns": 3}).cells}
    assert fewer <= {(cell.turn, cell.faults) for cell in sweep_of(FAULTY).cells}


def test_the_key_of_a_cell_has_the_time_that_was_drawn():
    cell = sweep_of(FAULTY).cells[0]
    assert replace(cell, faults=None).key("code") != cell.key("code")
    assert "at=" in cell.spec.said()["faults"]
    assert ".." not in cell.spec.said()["faults"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"base": BASE, "launcher": "yarn"}, "there is no launcher 'yarn'"),
        ({"base": BASE, "capacity": {"stp": 1}}, "there is no 'stp' in [capacity]"),
        ({"base": BASE, "capacity": {"step": 1.05}}, "[capacity] step is a percentage"),
        ({"base": BASE, "capacity": {"step": "0%"}}, "[capacity] step is a percentage"),
        ({"base": BASE, "capacity": {"tries": 0}}, "[capacity] tries"),
        ({"base": BASE, "capacity": {"window": "1s"}}, "[capacity] window is from 4s"),
        ({"base": BASE, "capacity": 3}, "[capacity]"),
        ({"base": {**BASE, "faults": "kill slot=0 at=3s..2s"}}, "a range ends after it begins"),
        ({"base": {**BASE, "faults": "kill slot=0 at=3s..x"}}, "at=18s..23s, or at=18s..+interval"),
        ({"base": {**BASE, "faults": "kill slot=0 at=..3s"}}, "at=..3s: a range is written as"),
        ({"base": {**BASE, "faults": "kil slot=0 at=1s..2s"}}, "'kil' is not known here"),
    ],
)
def test_what_is_wrong_with_a_draw_a_search_or_a_launcher_is_said(content, said):
    with pytest.raises(UsageError) as refused:
        sweep_of(content)
    assert said in str(refused.value)


def test_how_long_a_fault_lasts_is_drawn_too_and_alike_for_all_columns_of_a_turn():
    said = "kill slot=1 at=4s..6s for=2s..5s"
    assert has_ranges(said)
    assert has_ranges("kill slot=1 at=4s for=2s..5s")
    assert not has_ranges("kill slot=1 at=4s for=2s")
    assert at_last(said, 1_000) == "kill slot=1 at=6s for=5s"
    turns = [drawn(said, 1_000, seed=1, turn=turn) for turn in range(20)]
    assert turns[3] == drawn(said, 9_000, seed=1, turn=3)
    away = [fault.for_ms for turn in turns for fault in parse(turn)]
    assert len(set(away)) > 10
    assert all(2_000 <= each <= 5_000 for each in away)
