"""A run whose faults never struck, or struck when nothing was at stake, proves nothing and says so."""

import re
import shlex
from pathlib import Path

import pytest
from sim_runs import Case, kept, simulate
from typer.testing import CliRunner

from snapline.chaos.strikes import Strike
from snapline.cli.app import app
from snapline.cli.simulate import EXAMPLES
from snapline.engine.coordinator.coordinator import Coordinator
from snapline.sim import run
from snapline.workload import WORKLOADS

ROOT = Path(__file__).parents[2]


def outcome(faults, protocol="aligned", seed=1):
    return kept(Case(protocol, "counting", seed, faults=faults))


@pytest.mark.parametrize(
    "never",
    [
        "kill slot=1 at=90s",
        "kill slot=1 step=100000",
        "damage slot=1 at=1ms",
        "lose manifest at=1ms",
    ],
)
def test_a_fault_whose_moment_never_came_is_named(never):
    ran = outcome(f"kill slot=0 at=1200ms; {never}")
    assert ran.vacuous == f"1 of 2 faults never struck: '{never}'"
    assert ran.strikes == (Strike("kill slot=0 at=1200ms", True, 1_200), Strike(never, False, None))


def test_a_kill_in_a_recovery_never_strikes_where_nothing_is_recovered():
    never = "kill slot=1 on=recovery"
    assert outcome(never).vacuous == f"1 of 1 fault never struck: '{never}'"
    assert outcome(f"kill slot=0 at=1200ms; {never}").vacuous is None


def test_trouble_with_starting_never_strikes_where_nothing_is_started():
    never = "launch failing slot=1 at=1s for=500ms"
    assert outcome(never).vacuous == f"1 of 1 fault never struck: '{never}'"


def test_a_fault_that_finds_its_target_down_struck():
    ran = outcome("kill slot=1 at=1200ms; kill slot=1 at=1201ms; delay slot=1 5ms at=1202ms for=1s")
    assert [strike.struck for strike in ran.strikes] == [True, True, True]
    assert ran.vacuous is None


@pytest.mark.parametrize("protocol", ["none", "aligned"])
def test_a_loss_before_anything_could_be_lost_proves_nothing(protocol):
    early = outcome("kill slot=1 at=40ms", protocol)
    assert "when there was nothing to lose yet" in early.vacuous
    assert outcome("kill slot=1 at=1200ms", protocol).vacuous is None


def test_without_faults_nothing_is_promised_about_them():
    assert outcome("").vacuous is None


def test_a_run_that_ends_at_once_with_nothing_is_not_acquitted_by_a_blind_judge(monkeypatch):
    """Sabotage: the job ends when it has just begun, and the oracle sees nothing wrong in that."""
    monkeypatch.setattr(run, "WORKLOADS", {"counting": Blind(WORKLOADS["counting"])})
    started = Coordinator.registered_slot

    def end(self, slot, incarnation):
        started(self, slot, incarnation)
        self._end(None)

    monkeypatch.setattr(Coordinator, "registered_slot", end)
    assert simulate(Case("aligned", "counting", 1, faults="")).vacuous == "the run put out nothing"


class Blind:
    """A workload whose oracle is content with everything, and has no doubts."""

    doubts = None

    def __init__(self, workload):
        self.build = workload.build

    def judge(self, *what):
        return ()


# The examples that people copy.


def examples():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = {page.name: page.read_text() for page in pages} | {"--help": EXAMPLES}
    for name, text in texts.items():
        for command in re.findall(
            r"(?:snapline|\./dev) (simulate [^\n`\[]*--faults [^\n`\[]*)", text
        ):
            if "--profile" not in command:  # that is a prediction, and needs a profile of a machine
                yield pytest.param(shlex.split(command, comments=True), id=f"{name}: {command}")


@pytest.mark.parametrize("arguments", list(examples()))
def test_every_example_with_faults_strikes(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output


def test_there_are_examples():
    assert len(list(examples())) >= 2
