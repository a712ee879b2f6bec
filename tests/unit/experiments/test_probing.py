"""One try of a rate: when it is ended early, when it is judged, and what is said of it. No run is made."""

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from snapline.experiments.rates import probing
from snapline.experiments.rates.capacity import SearchForm, Trial
from snapline.experiments.rates.pace import Window
from snapline.experiments.rates.probing import OutputWrong, Prober, find_capacity, segments_per_log
from snapline.kernels.forms import VARIABLE
from snapline.metrics.second import Second
from snapline.rundir.spec import Spec
from snapline.runtime.launch.processes import PROGRAM, ProcessSlots

SPEC = Spec("q12", protocol="aligned", slots=1, interval_ms=1_000)


@dataclass(frozen=True)
class Prepared:
    spec: Spec
    launcher: object = None


class Told:
    """Writes down what it is told."""

    def __init__(self):
        self.said = []

    def begins(self, rate, window, left):
        self.said.append(("begins", rate, window.end_s, left))

    def second(self, second, window):
        self.said.append(("second", second.at_s))

    @contextmanager
    def judging(self, records):
        self.said.append(("judging", records))
        yield
        self.said.append(("judged",))

    def tried(self, trial):
        self.said.append(("tried", trial.rate, trial.because))


class World:
    """Plays runs: a machine that takes so many records a second, and a judge."""

    def __init__(self, monkeypatch, tmp_path):
        self.capacity = 10_000
        self.kept, self.aborted, self.problem = "yes", 0, None
        self.metrics = {}
        self.path = tmp_path
        self.launchers, self.judged, self.removed = [], 0, 0
        monkeypatch.setattr(probing, "prepare", self.prepare)
        monkeypatch.setattr(probing, "drive_prepared", self.drive)
        monkeypatch.setattr(probing, "conclude", self.conclude)
        monkeypatch.setattr(probing, "remove_run", self.remove)

    def prepare(self, spec, session, *, runs):
        return Prepared(spec)

    def drive(self, prepared, timeouts, watcher, begun):
        self.launchers.append(prepared.launcher)
        ended = []
        driver = SimpleNamespace(
            directory=SimpleNamespace(path=self.path, name="run"),
            loop=SimpleNamespace(post=lambda end: end()),
            interrupt=lambda: ended.append(True),
            problem=self.problem,
        )
        begun(driver)
        spec, read = prepared.spec, 0
        for at_s in range(30):
            due = 10**9 if spec.rate == "max" else spec.rate * (at_s + 1)
            slow = 0.1 if at_s < 2 and spec.rate == "max" else 1.0  # while kernels are compiled
            now = min(round(slow * self.capacity), due - read)
            read += now
            second = Second(at_s, running=1, read=now, written=now, backlog=due - read, lines=at_s)
            second.latency.add_ages(np.full(100, 10**9 - 2.0), 10**12)
            watcher.second(second)
            if ended or (spec.rate != "max" and 1000 * (at_s + 1) >= spec.duration_ms):
                break
        return prepared, driver

    def conclude(self, prepared, driver):
        self.judged += 1
        return SimpleNamespace(
            name="run",
            spec=prepared.spec,
            metrics=self.metrics,
            verdict=SimpleNamespace(kept=self.kept, because="somebody said so"),
            figures=SimpleNamespace(checkpoints=SimpleNamespace(aborted_rounds=self.aborted)),
        )

    def remove(self, runs, name):
        self.removed += 1


@pytest.fixture
def world(monkeypatch, tmp_path):
    return World(monkeypatch, tmp_path)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def prober(world, told, tmp_path):
    return Prober(SPEC, None, tmp_path, 15, told)


def test_the_run_at_full_speed_is_ended_when_it_was_timed_and_is_not_judged(prober, world, told):
    assert prober.start() == 7_000
    assert (world.judged, world.removed) == (0, 1)
    assert told.said == [("begins", None, 6, None), *(("second", at) for at in range(6))]


def test_a_rate_that_is_sustained_was_judged(prober, world, told):
    assert prober.attempt(9_000, 5).sustained
    assert (world.judged, world.removed) == (1, 1)
    assert told.said == [
        ("begins", 9_000, 20, 5),
        *(("second", at) for at in range(21)),
        ("judging", 9_000 * 21),
        ("judged",),
        ("tried", 9_000, ()),
    ]
    assert all(isinstance(launcher, ProcessSlots) for launcher in world.launchers)


def test_slots_have_compiled_kernels_before_input_is_due(prober, world):
    """If they loaded them while they are measured, a middling rate would fail and a high one would not."""
    prober.attempt(9_000)
    says = "from snapline.kernels import forms\nprint(forms.loaded())"
    program = world.launchers[0].program.replace(PROGRAM, says)
    wanted = {**os.environ, VARIABLE: "auto"}
    said = subprocess.check_output([sys.executable, "-c", program], env=wanted, text=True)
    assert said == "True\n"


def test_a_rate_that_is_a_little_too_high_is_not_judged(prober, world):
    trial = prober.attempt(10_400)
    assert trial.because[0] == "only 96.2% of what was due was read"
    assert not trial.by_far
    assert (world.judged, world.removed) == (0, 1)


def test_a_rate_that_is_far_too_high_is_no_near_miss(prober):
    assert prober.attempt(11_000).by_far
    assert prober.attempt(100_000).by_far


def test_a_run_that_is_far_behind_is_ended_after_the_warm_up(prober, world, told):
    assert prober.attempt(100_000).because == (probing.HOPELESS,)
    assert (world.judged, world.removed) == (0, 1)
    assert [each for each in told.said if each[0] == "second"][-1] == ("second", 5)


def test_a_run_that_ended_early_says_why(prober, world):
    world.problem = "no process started"
    assert prober.attempt(9_000).because == ("it ended early: no process started",)
    assert world.judged == 0


def test_a_wrong_output_ends_the_search_and_the_run_stays(prober, world):
    world.kept = "no"
    with pytest.raises(OutputWrong, match="run, at 9000 records/s: somebody said so"):
        prober.attempt(9_000)
    assert world.removed == 0


def test_what_nobody_knows_and_rounds_that_were_given_up_do_not_count(prober, world, tmp_path):
    world.kept, world.aborted = "unknown", 2
    assert prober.attempt(9_000).because == (
        "2 rounds of checkpoints were given up",
        "nobody knows whether its output is right: somebody said so",
    )
    # A protocol without checkpoints promises nothing: it is enough that nothing is wrong.
    world.aborted = 0
    bare = Spec("q12", protocol="none", slots=1, interval_ms=1_000)
    assert Prober(bare, None, tmp_path, 15).attempt(9_000).sustained


def test_a_whole_search_finds_what_the_machine_takes(prober, world, told):
    found = find_capacity(prober, SearchForm(1.05, 3, 15))
    assert found.low <= 10_100  # 99 % of it is all that has to be read
    assert found.high >= 10_000
    lefts = [each[3] for each in told.said if each[0] == "begins"][1:]
    assert lefts == [*range(len(found.trials), 0, -1)]


def test_segments_are_counted_for_each_log(tmp_path):
    directory = SimpleNamespace(path=tmp_path)
    assert segments_per_log(directory) is None
    (tmp_path / "logs").mkdir()
    for name in ("a/0.e1.i0.000000.log", "a/0.e1.i0.000001.log", "b/0.e1.i0.000000.log"):
        (tmp_path / "logs" / name.replace("/", "-")).touch()
    (tmp_path / "logs" / "a-0.e1.i0.000000.spare").touch()
    assert segments_per_log(directory) == 1.5


def test_the_share_of_the_input_is_told_where_figures_have_it(prober, world):
    assert prober.attempt(9_000).generator is None
    cpu_s = {"driver": 7.0, "slot/0": 3.0, "slot/1": 5.0}
    world.metrics = {"resources": {"generator_cpu_s": 2.0, "cpu_s": cpu_s}}
    assert prober.attempt(9_000).generator == 0.25
    world.metrics = {"resources": None}
    assert prober.attempt(9_000).generator is None


def test_a_window_knows_its_seconds():
    assert [at for at in range(9) if Window(2, 4).holds(Second(at))] == [2, 3, 4, 5]
    assert Trial(1).sustained
