"""A flow file with something wrong in it gives one message that says where."""

import pytest

import snapline as sl
from snapline.errors import UsageError
from snapline.rundir.program import load_flow, program_of_run
from snapline.rundir.spec import Spec

GOOD = """
import snapline as sl
flow = sl.Dataflow("f")
flow.source(sl.generated(lambda n: {"key": n % 3}, rate=10)).key_by("key").count().sink("counts")
"""


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("flow = (\n", "flow", r"mine\.py, line 1: .*never closed"),
        ("import nowhere\n", "flow", r"mine\.py, line 1: ModuleNotFoundError: .*nowhere"),
        ("x = 1\ny = x / 0\n", "flow", r"mine\.py, line 2: ZeroDivisionError"),
        ("flow = 3\n", "flow", r"mine\.py:flow is a int, not a snapline\.Dataflow"),
        ("def flow():\n    return 1 / 0\n", "flow", r"mine\.py, line 2: ZeroDivisionError"),
        (GOOD, "other", r"has no 'other': it has flow"),
        ("x = 1\n", "flow", r"has no 'flow': it makes no Dataflow"),
        (
            GOOD.replace('key_by("key")', 'key_by("colour")'),
            "flow",
            r"mine\.py, line 4: 'source' has no column colour to key by: it has id, time, key",
        ),
    ],
)
def test_an_error_in_a_flow_file_is_one_message_with_the_line(
    tmp_path, monkeypatch, text, name, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UsageError, match=message):
        load_flow(f"mine.py:{name}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD, r"^say mine\.py:NAME: it has flow$"),
        ("x = 1\n", r"^say mine\.py:NAME: it makes no Dataflow at its top level$"),
        ("import broken\n", r"broken\.py, line 2: "),
        ("import sys\nsys.exit()\n", r"^mine\.py, line 2: SystemExit"),
    ],
)
def test_a_file_without_a_name_says_which_there_are(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "broken.py").write_text("x = 1\ny = (\n")
    with pytest.raises(UsageError, match=message):
        load_flow("mine.py")


def test_the_nearest_workload_is_suggested():
    with pytest.raises(UsageError, match=r"no workload 'q21'.*did you mean q1 or q12\?$"):
        load_flow("q21")
    with pytest.raises(UsageError, match=r"no workload 'REACHABILITY'.*did you mean reachability"):
        load_flow("REACHABILITY")


@pytest.mark.parametrize("text", ["q99", "mine.py", "nowhere.py:flow", "mine:flow"])
def test_what_is_no_flow_is_said_so(text):
    with pytest.raises(UsageError, match=r"no workload|no file"):
        load_flow(text)


def test_a_file_may_hold_a_dataflow_or_a_function_that_makes_one(tmp_path):
    (tmp_path / "both.py").write_text(GOOD + "\ndef make():\n    return flow\n")
    assert isinstance(load_flow(f"{tmp_path}/both.py:flow"), sl.Dataflow)
    assert load_flow(f"{tmp_path}/both.py:make").name == "f"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sl.records([], rate=1), "no records"),
        (
            lambda: sl.records([{"a": 1}, {"b": 2}], rate=1),
            r"record 1 has the columns b.*first has a",
        ),
        (lambda: sl.records([{"a": 1}], rate=0), "records per second, at least 1, not 0"),
        (lambda: sl.generated(lambda n: {"id": n}, rate=5).schema, "cannot make the column id"),
    ],
)
def test_inputs_that_cannot_be_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_given_records_are_dealt_out_in_order_and_due_at_their_rate():
    feed = sl.records([{"n": n} for n in range(10)], rate=5)
    bound = feed.bind(2, 1_500)
    assert [bound.end(0), bound.end(1)] == [4, 4]
    assert bound.read(0, 0, 9)["n"].tolist() == [0, 2, 4, 6]
    assert bound.read(1, 0, 9)["time"].tolist() == [200, 600, 1_000, 1_400]


def test_a_rule_sees_every_number_once_over_all_partitions():
    bound = sl.generated(lambda n: {"n": n}, rate=100).bind(4, 1_000)
    numbers = [n for p in range(4) for n in bound.read(p, 0, 1_000)["n"].tolist()]
    assert sorted(numbers) == list(range(100))


TRAP = """
from pathlib import Path
Path(__file__).with_name("sprung").touch()
"""


def test_a_file_that_only_a_run_directory_names_is_not_executed(tmp_path):
    (tmp_path / "trap.py").write_text(TRAP + GOOD)
    spec = Spec(f"{tmp_path}/trap.py:flow")
    with pytest.raises(UsageError, match=r"trap\.py:flow.*not executed.*--flow FILE:NAME.*flow="):
        program_of_run(spec, None)
    assert not (tmp_path / "sprung").exists()


def test_the_flow_of_a_run_is_what_the_user_names(tmp_path):
    (tmp_path / "mine.py").write_text(GOOD)
    flow = load_flow(f"{tmp_path}/mine.py:flow")
    spec = Spec("nowhere.py:flow", slots=2)
    assert program_of_run(spec, flow).flow.name == "f"
    assert program_of_run(Spec("sst"), None).lineage is not None
    with pytest.raises(UsageError, match=r"'bids per bidder', which a program held"):
        program_of_run(Spec("bids per bidder"), None)
