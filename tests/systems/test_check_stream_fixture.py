"""The fixture `check_stream`, which pytest finds by itself where Snapline is installed."""

import sys
from importlib.metadata import entry_points

import pytest

import snapline
from snapline.judge.verdict import Verdict
from snapline.systems.own_query.check import StreamCheck
from snapline.workload.common.base import Problem

PROBLEMS = (Problem("duplicate", "n=1", "it came out 2 times, and the batch has it 1 time"),)


@pytest.fixture
def result(monkeypatch):
    """What the function behind the fixture returns, and how it was called."""
    calls = []
    told = {"verdict": Verdict("yes", "3 rows are right")}

    def stub(*arguments, **options):
        calls.append((arguments, options))
        return StreamCheck(told["verdict"], kills=2, batches=8, rows=3)

    monkeypatch.setattr(snapline, "check_stream", stub, raising=False)
    told["calls"] = calls
    return told


def test_a_query_that_survives_passes_and_its_result_is_returned(check_stream, result, tmp_path):
    assert check_stream("build", "df", seed=3).kills == 2
    check_stream("build", "df", directory="mine")
    (given, first), (_, second) = result["calls"]
    assert given == ("build", "df")
    assert first == {"directory": tmp_path / "check-stream-0", "seed": 3}
    assert second["directory"] == "mine"


@pytest.mark.parametrize("kept", ["no", "unknown"])
def test_any_other_verdict_fails_the_test_with_its_witnesses(check_stream, result, kept):
    result["verdict"] = Verdict(kept, "rows came twice", PROBLEMS)
    with pytest.raises(pytest.fail.Exception) as failed:
        check_stream("build", "df")
    assert str(failed.value).splitlines() == [
        f"exactly once: {kept} (killed 2 times, 8 micro-batches, 3 rows of output)",
        "rows came twice",
        "  duplicate n=1: it came out 2 times, and the batch has it 1 time",
    ]


def test_pytest_finds_the_fixture_and_imports_no_spark_for_it():
    import subprocess

    (found,) = [e for e in entry_points(group="pytest11") if e.value.startswith("snapline.")]
    code = f"import sys, {found.value}; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
