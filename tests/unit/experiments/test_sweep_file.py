"""Sweep files: which runs they ask for, in which order, and what is wrong with others."""

from dataclasses import replace

import pytest

from snapline.errors import UsageError
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
