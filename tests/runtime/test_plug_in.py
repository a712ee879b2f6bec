"""A protocol of somebody else, in one file with a command and a timer of its own, found by its entry point.

It runs in the simulator, in processes and on Spark, and nothing else knows that it exists.
"""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from process_slots import committed, run_processes

from plugged_in import install
from snapline.core.effects import Order
from snapline.core.events import TimerFired
from snapline.journal.codec import lines, read
from snapline.journal.entry import Handled
from snapline.judge.history import journal_entries
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.sim.case import Case
from snapline.sim.run import simulate

NAME = "staggered"


def said(entries) -> set[str]:
    """The commands that were ordered, the timers that fired and all events, by their classes."""
    handled = [entry for entry in entries if isinstance(entry, Handled)]
    orders = [e.command for entry in handled for e in entry.effects if isinstance(e, Order)]
    fired = [entry.event.timer for entry in handled if isinstance(entry.event, TimerFired)]
    return {type(each).__name__ for each in (*orders, *fired, *(e.event for e in handled))}


def test_it_keeps_its_promise_in_the_simulator(monkeypatch):
    install(monkeypatch)
    outcomes = [
        simulate(Case(NAME, workload, seed), journal=True)
        for workload in ("tallies", "q3")
        for seed in range(1, 6)
    ]
    assert [outcome.violation for outcome in outcomes] == [None] * 10
    assert sum(outcome.stats.get("rollbacks", 0) for outcome in outcomes)
    journal = outcomes[0].journal
    assert {"TakeTurn", "NextTurn"} <= said(journal)
    assert list(lines(read(lines(journal), PROTOCOLS[NAME]))) == list(lines(journal))


@pytest.mark.parametrize(("forgotten", "name"), [("commands", "TakeTurn"), ("timers", "NextTurn")])
def test_what_it_uses_and_does_not_list_is_found_by_the_simulator(monkeypatch, forgotten, name):
    install(monkeypatch)
    careless = replace(PROTOCOLS[NAME], **{forgotten: ()})
    violation = simulate(Case(NAME, "tallies", 1), protocol=careless).violation
    assert violation is not None
    assert f"does not list {name} among its {forgotten}=" in violation.story


def test_it_keeps_its_promise_in_processes_of_which_one_is_killed(monkeypatch, tmp_path):
    install(monkeypatch)
    outcome = run_processes(tmp_path, NAME, "kill slot=1 at=1s", until=committed)
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [1])
    assert outcome.commits
    directory = outcome.driver.directory
    (path,) = (directory.path / "journal").glob("driver-*.jsonl")
    assert {"TakeTurn", "NextTurn"} <= said(journal_entries(directory, path))


def test_the_example_of_the_documentation_keeps_its_promise(monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "protocols.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    example = ModuleType("example_of_a_protocol")
    monkeypatch.setitem(sys.modules, example.__name__, example)
    exec(code, vars(example))
    for seed in range(1, 4):
        case = Case(NAME, "q3", seed)
        assert simulate(case, protocol=example.STAGGERED).violation is None


@pytest.mark.spark
def test_it_keeps_its_promise_on_spark(monkeypatch, tmp_path):
    install(monkeypatch)
    faults = ["--faults", "kill slot=0 at=1500ms"]
    sizes = ["--duration", "3s", "--interval", "400ms", "--rate", "500", "--slots", "2"]
    command = ["run", "tallies", "--protocol", NAME, *sizes, *faults, "--runs", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-m", "snapline", *command, "--json"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr
    (directory,) = map(RunDirectory, tmp_path.iterdir())
    (path,) = (directory.path / "journal").glob("driver-*.jsonl")
    entries = journal_entries(directory, path)
    assert {"TakeTurn", "NextTurn", "TasksLost"} <= said(entries)
