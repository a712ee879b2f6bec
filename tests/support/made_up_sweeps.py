"""Sweeps without Spark: the runs are made up, and everything around them is real.

`world` and `snapline` are fixtures: a test that uses them imports them.
"""

import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from snapline.cli.app import main
from snapline.errors import NotStarted
from snapline.experiments import sweep as sweeping
from snapline.experiments.rates.capacity import Trial
from snapline.experiments.rates.pace import Window
from snapline.metrics.second import Second

FILE = """
turns = 6
[base]
flow = "q12"
slots = 1
duration = "1s"
[matrix]
protocol = ["none", "aligned"]
"""


@dataclass
class MadeUp:
    """Stands for a run that is over."""

    name: str
    metrics: dict[str, Any]
    verdict: Any = field(default_factory=lambda: Verdict())
    losses: None = None


@dataclass
class Verdict:
    kept: str = "yes"
    because: str = "it is right"


class Session:
    def stop(self):
        pass


class World:
    """Plays Spark and the machine: counts runs, fails or is disturbed when told to."""

    def __init__(self, monkeypatch):
        self.made = []
        self.rates = []
        self.searched = []  #: protocols whose capacity was found
        self.foreign = []  #: shares of the next runs
        self.broken = set()  #: numbers of runs that fail
        self.removed = []
        self.meanwhile = lambda number: None  #: is called while a run is made
        monkeypatch.setattr(sweeping, "own_session", lambda slots: Session())
        monkeypatch.setattr(sweeping, "run", self.run)
        monkeypatch.setattr(sweeping, "LoadWatch", self.watch)
        monkeypatch.setattr(sweeping, "Prober", self.prober)
        monkeypatch.setattr(sweeping, "remove_run", lambda runs, name: self.removed.append(name))

    def prober(self, spec, session, runs, least_s, teller):
        self.searched.append(spec.protocol)
        capacity = 10_000 if spec.protocol == "none" else 5_000

        def attempt(rate, left):
            teller.begins(rate, Window(5, least_s), left)
            for at_s in range(21):  # the last one is beyond the window
                teller.second(Second(at_s, read=rate, backlog=0), Window(5, least_s))
            with teller.judging(rate):
                trial = Trial(rate, () if rate <= capacity else ("too fast",), True, 20.0)
            teller.tried(trial)
            return trial

        return SimpleNamespace(spec=spec, start=lambda: 7_000, attempt=attempt)

    def watch(self):
        return nullcontext(SimpleNamespace(foreign=self.foreign.pop(0) if self.foreign else 0.0))

    def run(self, spec, session, *, runs, watcher):
        self.made.append(spec.protocol)
        self.rates.append(spec.rate)
        number = len(self.made)
        self.meanwhile(number)
        if number in self.broken:
            raise NotStarted("no process started")
        noise = 1 + (number * 7 % 5) / 1_000
        rate = (1_000 if spec.protocol == "none" else 800) * noise
        return MadeUp(f"run-{number}", {"rate": {"read": rate, "written": rate}})


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "price.toml").write_text(FILE)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run
