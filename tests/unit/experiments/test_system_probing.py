"""One try of a rate on another system: how far it is behind, when it is given up, and what is judged."""

from types import SimpleNamespace

import pytest

from snapline.errors import UsageError
from snapline.experiments.rates import system_probing
from snapline.experiments.rates.capacity import SearchForm
from snapline.experiments.rates.probing import OutputWrong, find_capacity
from snapline.experiments.rates.system_probing import LEAST_S, WARM_UP_S, SystemProber
from snapline.journal.entry import Happened
from snapline.journal.happenings import InputEnded, SystemProgressed
from snapline.rundir.spec import Spec

SPEC = Spec("q12", slots=2, system="toy")


class World:
    """Plays runs of a system that takes in a micro-batch at a time, and a judge."""

    def __init__(self, monkeypatch):
        self.capacity, self.batch_s, self.kept, self.says_read = 40_000, 1.5, "yes", True
        self.started, self.directories = 0, []
        monkeypatch.setattr(system_probing, "run", self.run)

    def make(self):
        self.started += 1
        return object()

    def run(self, spec, system, *, runs, tell, tell_every_s):
        self.directories.append(runs)
        (runs / "left").touch()
        read, next_s, now_s = 0, 9.0, 0.0  # the first micro-batch takes long
        while 1000 * now_s < spec.duration_ms:
            given = int(spec.rate * now_s)
            if now_s >= next_s:
                read, next_s = min(given, read + int(self.capacity * self.batch_s)), now_s + 1.5
            figures = {"due": given, "batches": 1, **({"read": read} if self.says_read else {})}
            tell(Happened(int(now_s * 1e6), "toy", 0, SystemProgressed(figures)))
            now_s += tell_every_s
        tell(Happened(int(now_s * 1e6), "toy", 0, InputEnded(int(spec.rate * now_s))))
        # What comes after the end of the input does not count.
        tell(Happened(int(now_s * 1e6) + 9, "toy", 0, SystemProgressed({"due": 9, "read": 0})))
        verdict = SimpleNamespace(kept=self.kept, because="two rows are missing")
        directory = SimpleNamespace(path=runs / "run")
        return SimpleNamespace(verdict=verdict, directory=directory, spec=spec)


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def test_the_search_finds_what_a_system_of_micro_batches_can_do(world, tmp_path):
    prober = SystemProber(SPEC, world.make, tmp_path / "runs", 15)
    found = find_capacity(prober, SearchForm(1.05, 1, 15))
    assert found.low <= world.capacity <= 1.06 * found.low
    assert world.started == len(found.trials) > 5
    assert list((tmp_path / "runs").iterdir()) == []  # nothing is left


def test_a_rate_that_is_a_little_too_high_is_not_sustained_and_not_judged(world, tmp_path):
    world.kept = "no"  # it would be an error if it were judged
    trial = SystemProber(SPEC, world.make, tmp_path, 15).attempt(41_500)
    assert not trial.sustained
    assert "the backlog may grow" in trial.because[-1]


def test_a_hopeless_run_is_ended_early(world, tmp_path):
    trial = SystemProber(SPEC, world.make, tmp_path, 15).attempt(400_000)
    assert trial.because == ("its backlog held more than three seconds of input",)
    assert trial.by_far


def test_wrong_output_ends_the_search_and_is_kept_for_whoever_looks(world, tmp_path):
    world.kept = "no"
    with pytest.raises(OutputWrong, match="two rows are missing"):
        SystemProber(SPEC, world.make, tmp_path, 15).attempt(1_000)
    assert (world.directories[0] / "left").exists()


def test_output_that_nobody_could_judge_is_not_sustained(world, tmp_path):
    world.kept = "unknown"
    trial = SystemProber(SPEC, world.make, tmp_path, 15).attempt(1_000)
    assert trial.because == ("nobody knows whether its output is right: two rows are missing",)


def test_a_system_that_does_not_say_what_it_has_read_is_refused(world, tmp_path):
    world.says_read = False
    with pytest.raises(UsageError, match="does not say how many records it has read"):
        SystemProber(SPEC, world.make, tmp_path, 15).attempt(1_000)
    assert list(tmp_path.iterdir()) == []


def test_a_long_window_is_held_for_as_long_as_was_asked():
    assert SystemProber(SPEC, object, None, 15).window.end_s == WARM_UP_S + LEAST_S
    assert SystemProber(SPEC, object, None, 60).window.length_s == 60
