"""`snapline simulate` as a user meets it: what is asked of the simulator, what is printed, exit codes.

The simulator is replaced, so that each scenario is exact; that the real one fits is in test_cli_real.py.
"""

import json
import re
import sys

import pytest

from snapline.chaos.strikes import Strike
from snapline.cli import failure as cli_failure
from snapline.cli import simulate as cli_simulate
from snapline.cli.app import main
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case
from snapline.sim.run import Outcome, Violation
from snapline.workload import WORKLOADS

STATS = {"crashes": 2, "rollbacks": 1, "replayed": 1200, "forced": 3, "skipped": 4, "useless": 0}


def outcome(case, violation=None, refused=None, stopped=None, empty=None):
    return Outcome(
        case=case,
        stopped=stopped,
        vacuous=empty,
        strikes=(Strike("kill slot=1 at=60s", False, None),) if empty else (),
        violation=violation,
        refused=refused,
        stats={} if refused else STATS,
        crashed_after_commit=True,
        virtual_ms=2400,
    )


class FakeSimulator:
    """Every run keeps its promise, unless `broken` or `refused` names it."""

    def __init__(self):
        self.ran = []
        self.journals = []
        self.broken = {}
        self.refused = {}
        self.stopped = None
        self.empty = None
        self.vacuous = []
        self.jobs = None
        self.interrupt = False

    def simulate(self, case, journal=False):
        if self.interrupt:
            raise KeyboardInterrupt
        self.ran.append(case)
        self.journals.append(journal)
        broken = self.broken.get((case.protocol, case.seed))
        refused = self.refused.get((case.protocol, case.workload))
        return outcome(case, broken, refused, self.stopped, self.empty)

    def sweep(self, cases, jobs, on_outcome):
        self.jobs = jobs
        outcomes = [self.simulate(case) for case in cases]
        for each in outcomes:
            on_outcome(each)
        return outcomes

    def shrink_case(self, case, budget=200):
        return Case(case.protocol, case.workload, case.seed, slots=2, records=7, faults="kill ...")


@pytest.fixture(autouse=True)
def sim(monkeypatch, tmp_path):
    fake = FakeSimulator()
    for module, name in [
        (cli_simulate, "simulate"),
        (cli_simulate, "sweep"),
        (cli_failure, "simulate"),
        (cli_failure, "shrink_case"),
    ]:
        monkeypatch.setattr(module, name, getattr(fake, name))
    monkeypatch.setattr(cli_simulate, "vacuous", lambda outcomes: fake.vacuous)
    monkeypatch.chdir(tmp_path)
    return fake


@pytest.fixture
def snapline(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


def row(out, protocol, workload):
    """The numbers of one row of the table."""
    [line] = [line.split() for line in out.splitlines() if line.split()[:2] == [protocol, workload]]
    return line[2:]


def test_without_options_every_protocol_runs_twenty_seeds_of_counting(sim, snapline):
    code, out, _ = snapline("simulate")
    assert code == 0
    assert [(c.protocol, c.workload, c.seed) for c in sim.ran] == [
        (protocol, "counting", seed) for protocol in PROTOCOLS for seed in range(1, 21)
    ]
    assert f"{20 * len(PROTOCOLS)} runs" in out
    assert "every promise kept" in out


def test_each_protocol_is_held_to_its_own_promise_unless_one_is_named(sim, snapline):
    snapline("simulate", "--seeds", "1")
    assert {c.protocol: c.guarantee for c in sim.ran} == {
        name: protocol.guarantees[0].value for name, protocol in PROTOCOLS.items()
    }
    sim.ran.clear()
    snapline("simulate", "--seeds", "2", "--protocol", "bcs", "--guarantee", "at-least-once")
    assert {c.guarantee for c in sim.ran} == {"at-least-once"}


def test_the_table_adds_up_the_seeds_of_a_cell(snapline):
    _, out, _ = snapline("simulate", "--protocol", "hmnr", "--workload", "q3", "--seeds", "3")
    assert row(out, "hmnr", "q3") == ["3", "6", "3", "3,600", "9", "12", "0", "0"]


def test_all_is_every_workload(sim, snapline):
    snapline("simulate", "--protocol", "bcs", "--workload", "all", "--seeds", "1", "--jobs", "3")
    assert [c.workload for c in sim.ran] == list(WORKLOADS)
    assert sim.jobs == 3


def test_a_refused_combination_is_listed_with_its_reason_and_breaks_nothing(sim, snapline):
    sim.refused["aligned", "nhop"] = "aligned cannot run a cycle [sic]"
    code, out, _ = snapline("simulate", "--workload", "nhop", "--seeds", "2")
    assert code == 0
    assert "refused: aligned on nhop: aligned cannot run a cycle [sic]" in out
    assert "refused: bcs" not in out


def test_when_everything_is_refused_the_input_was_bad(sim, snapline):
    sim.refused["aligned", "nhop"] = "aligned cannot run a cycle"
    for seeds in (["--seeds", "2"], ["--seed", "2"]):
        code, out, err = snapline("simulate", "--protocol", "aligned", "--workload", "nhop", *seeds)
        assert (code, out) == (2, "")
        assert "aligned cannot run a cycle" in err


def test_a_broken_promise_is_shrunk_written_down_and_repeated(sim, snapline, tmp_path):
    sim.broken["hmnr", 2] = Violation("no_orphans", "bid 7 was received, [but] never sent")
    code, out, _ = snapline("simulate", "--protocol", "hmnr", "--seeds", "3")
    assert code == 1
    assert row(out, "hmnr", "counting")[-1] == "1"
    assert "broken no_orphans: hmnr on counting, seed 2" in out
    assert "bid 7 was received, [but] never sent" in out
    assert "2 slots, 7 records" in out
    command = "snapline simulate --repeat snapline-failure-hmnr-counting-2.json"
    assert f"repeat with: {command}" in out
    assert "1 run broke a promise" in out

    sim.ran.clear()
    code, out, _ = snapline(*command.split()[1:])
    assert code == 1
    assert sim.ran == [sim.shrink_case(Case("hmnr", "counting", 2))]
    assert "broken no_orphans" in out


def test_a_repaired_failure_no_longer_fails(sim, snapline):
    sim.broken["hmnr", 2] = Violation("no_orphans", "story")
    snapline("simulate", "--protocol", "hmnr", "--seeds", "3")
    sim.broken.clear()
    code, out, _ = snapline("simulate", "--repeat", "snapline-failure-hmnr-counting-2.json")
    assert code == 0
    assert "kept" in out


def test_only_the_first_failure_of_a_cell_is_shrunk(sim, snapline, tmp_path):
    for seed in (2, 3):
        sim.broken["hmnr", seed] = Violation("no_orphans", "story")
    _, out, _ = snapline("simulate", "--protocol", "hmnr", "--seeds", "3")
    assert [f.name for f in tmp_path.iterdir()] == ["snapline-failure-hmnr-counting-2.json"]
    assert f"repeat with: {Case('hmnr', 'counting', 3).command()}" in out


def test_a_failure_that_cannot_be_written_is_still_told(sim, snapline, tmp_path):
    sim.broken["hmnr", 2] = Violation("no_orphans", "story")
    (tmp_path / "snapline-failure-hmnr-counting-2.json").mkdir()
    code, out, err = snapline("simulate", "--protocol", "hmnr", "--seeds", "3")
    assert code == 1
    assert f"repeat with: {Case('hmnr', 'counting', 2).command()}" in out
    assert "cannot write snapline-failure-hmnr-counting-2.json" in err


def test_a_vacuous_sweep_fails(sim, snapline):
    sim.vacuous = ["no round was ever aborted under aligned"]
    code, out, _ = snapline("simulate")
    assert code == 1
    assert "proves nothing: no round was ever aborted under aligned" in out


@pytest.mark.parametrize("few", [["--seeds", "17"], ["--faults", "kill slot=1 at=800ms"]])
def test_a_small_sweep_or_one_with_chosen_faults_is_never_called_vacuous(sim, snapline, few):
    sim.vacuous = ["no round was ever aborted under aligned"]
    assert snapline("simulate", *few)[0] == 0


def test_a_run_that_rightly_stopped_is_told_apart_and_breaks_nothing(sim, snapline):
    sim.stopped = "the published line is damaged"
    told = "stopped, rightly: 2 runs, such as: the published line is damaged"
    code, out, _ = snapline("simulate", "--protocol", "bcs", "--seeds", "2")
    assert (code, told in out) == (0, True)
    code, out, _ = snapline("simulate", "--protocol", "bcs", "--seed", "2")
    assert code == 0
    assert "stopped, rightly: the published line is damaged" in out
    assert "kept" not in out


def test_a_run_that_proves_nothing_is_unknown_unless_that_is_allowed(sim, snapline):
    sim.empty = "1 of 1 fault never struck: 'kill slot=1 at=60s'"
    one = ("simulate", "--protocol", "bcs", "--seed", "2")
    code, out, _ = snapline(*one)
    assert code == 3
    assert f"unknown: {sim.empty}" in out
    code, out, _ = snapline(*one, "--allow-vacuous")
    assert code == 0
    assert "kept:" in out


def test_json_says_which_faults_struck_and_that_nothing_is_known(sim, snapline):
    sim.empty = "1 of 1 fault never struck: 'kill slot=1 at=60s'"
    one = ("simulate", "--protocol", "bcs", "--seed", "2", "--json")
    code, out, _ = snapline(*one)
    document = json.loads(out)
    assert (code, document["kept"], document["vacuous"]) == (3, "unknown", sim.empty)
    missed = {"statement": "kill slot=1 at=60s", "struck": False, "at_ms": None}
    assert document["faults"] == [missed]
    assert json.loads(snapline(*one, "--allow-vacuous")[1])["kept"] == "yes"


def test_a_broken_promise_is_broken_whatever_struck(sim, snapline):
    sim.empty = "1 of 1 fault never struck: 'kill slot=1 at=60s'"
    sim.broken["bcs", 2] = Violation("no_orphans", "story")
    code, out, _ = snapline("simulate", "--protocol", "bcs", "--seed", "2")
    assert code == 1
    assert "unknown" not in out


def test_one_seed_is_told_with_its_journal(sim, snapline):
    code, out, _ = snapline("simulate", "--protocol", "bcs", "--seed", "7")
    assert code == 0
    assert (sim.ran[0].seed, sim.journals) == (7, [True])
    assert "bcs on counting, seed 7" in out
    assert "kept" in out


def test_json_is_the_only_thing_on_standard_output(sim, snapline):
    sim.refused["aligned", "nhop"] = "a reason"
    sim.broken["hmnr", 2] = Violation("no_orphans", "story")
    code, out, _ = snapline("simulate", "--workload", "nhop", "--seeds", "2", "--json")
    document = json.loads(out)
    assert code == 1
    assert document["kept"] == "no"
    assert document["refused"] == [
        {"protocol": "aligned", "workload": "nhop", "reason": "a reason"}
    ]
    [violation] = document["violations"]
    assert violation["invariant"] == "no_orphans"
    assert violation["repeat"].startswith("snapline simulate --repeat")
    assert [cell["violations"] for cell in document["cells"] if cell["protocol"] == "hmnr"] == [1]


def test_one_run_as_json(snapline):
    code, out, _ = snapline("simulate", "--protocol", "bcs", "--seed", "7", "--json")
    document = json.loads(out)
    assert (code, document["kept"], document["stats"]) == (0, "yes", STATS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "alinged"], "no protocol 'alinged'; did you mean aligned"),
        (["--protocol", "xyzzy"], "there are: none, aligned"),
        (["--workload", "q33"], "no workload 'q33'; did you mean q3"),
        (["--seeds", "3", "--seed", "3"], "choose one of the two"),
        (["--diagram", "run.svg"], "--diagram draws one run"),
        (["--repeat", "nowhere.json"], "cannot read nowhere.json"),
        (["--repeat", "x.json", "--seed", "3"], "--repeat brings its own run"),
        (["--faults", "kill slot=7 at=1s"], "there is no slot 7"),
        (["--faults", "explode"], "explode"),
        (["--size", "huge"], "--size is full or small, not 'huge'"),
        (["--hot", "101"], "--hot is a whole number from 0 to 100, not 101"),
        (["--hot-moves", "1s"], "say how hot it is, as in --hot 20"),
        (["--hot", "20", "--hot-moves", "1"], "--hot-moves is written as"),
        (["--repeat", "x.json", "--hot", "3"], "--repeat brings its own run"),
        (["--seeds", "0"], "--seeds"),
        (["--guarantee", "perhaps"], "--guarantee"),
        (["--colour", "red"], "--colour"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(sim, snapline, arguments, message):
    code, out, err = snapline("simulate", *arguments)
    assert (code, out, sim.ran) == (2, "", [])
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"case": {"case": 1, "surprise": 1}}'])
def test_a_file_that_is_no_failure_is_bad_input(snapline, tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    code, _, err = snapline("simulate", "--repeat", "x.json")
    assert code == 2
    assert re.search("x.json.* is not", err)


def test_a_promise_that_a_protocol_does_not_give_is_refused(sim, snapline):
    """Never a silent run at another level."""
    code, out, _ = snapline("simulate", "--guarantee", "at-least-once", "--seeds", "1")
    assert code == 0
    assert (
        "refused: none on counting: none does not promise at-least-once, only nothing or bounded-loss"
        in out
    )
    assert "none" not in {case.protocol for case in sim.ran}
    for seeds in (["--seeds", "2"], ["--seed", "2"]):
        code, _, err = snapline(
            "simulate", "--protocol", "none", "--guarantee", "exactly-once", *seeds
        )
        assert code == 2
        assert "none does not promise exactly-once" in err


def test_sizes_reach_the_run(sim, snapline):
    snapline("simulate", "--protocol", "bcs", "--seed", "7", "--slots", "5", "--records", "9")
    assert [(case.slots, case.records) for case in sim.ran] == [(5, 9)]


def test_an_interrupt_says_so_and_leaves_with_130(sim, snapline):
    sim.interrupt = True
    for arguments in ([], ["--protocol", "bcs", "--seed", "1"]):
        code, _, err = snapline("simulate", *arguments)
        assert code == 130
        assert "interrupted" in err


def test_a_bug_of_ours_is_unknown_not_broken(snapline, monkeypatch):
    def crash(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(cli_simulate, "sweep", crash)
    code, _, err = snapline("simulate")
    assert code == 3
    assert "oops" in err
