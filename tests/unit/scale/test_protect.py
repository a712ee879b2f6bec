"""Which operators to save: the choice from benefits that are planted, and from runs that are simulated."""

import sys

import numpy as np
import pytest

from snapline.cli.app import main
from snapline.errors import UsageError
from snapline.report.run import command
from snapline.rundir.program import KnownAnswer, find_program
from snapline.rundir.spec import Spec
from snapline.scale.advice.kills import Candidate, KillTrials, SavingCost
from snapline.scale.advice.protect import Advised, Budget, advise_protect
from snapline.scale.advice.rough import ROUGH
from snapline.scale.predict import world_of
from snapline.workload.common.answers import AnswerColumns

KILLS = 12
NOISE = np.random.default_rng(7).normal(0, 0.01, KILLS)


class Planted:
    """Trials in which every operator takes away a known part of the deviation, or of its pool."""

    kills = KILLS
    spec = Spec("x", seed=3)

    def __init__(self, **operators):
        """By operator: pool, slots of the pool, gain by kill, blocked share, bytes per second."""
        self.candidates = [
            Candidate(name, pool, tuple(range(slots)))
            for name, (pool, slots, *_) in operators.items()
        ]
        self._gain = {name: np.array(each[2]) for name, each in operators.items()}
        self._cost = {name: SavingCost(*each[3:]) for name, each in operators.items()}
        self.made = 0

    def costs(self):
        return self._cost

    def scores(self, saved, pool):
        ours = [each.operator for each in self.candidates if each.pool == pool]
        taken = [self._gain[name] for name in ours if name in saved]
        return 1.0 + NOISE[: self.kills] - sum(taken, np.zeros(self.kills))


def sure(gain):
    return np.full(KILLS, gain)


def verdicts(found):
    return {each.operator: each.advised for each in found.operators}


def test_the_most_benefit_for_its_cost_comes_first():
    found = advise_protect(
        Planted(
            cheap=("", 2, sure(0.2), 0.005, 10.0),
            dear=("", 2, sure(0.3), 0.02, 10.0),
            useless=("", 2, sure(0.0), 0.001, 10.0),
        ),
        Budget(0.03),
    )
    assert found.chosen == ("cheap", "dear")
    assert verdicts(found)["useless"] is Advised.NO_BENEFIT
    assert found.operators[0].benefit.mean == pytest.approx(0.2)
    assert found.operators[0].rivals == ()
    assert found.cost.blocked == pytest.approx(0.025)
    assert found.unsaved.mean - found.saved.mean == pytest.approx(0.5)


def test_behind_the_chosen_ones_all_others_stand_in_the_order_in_which_they_would_come():
    """In the dataflow `least` comes first; the next to be saved, with a larger budget, would be `next`."""
    trials = Planted(
        least=("", 1, sure(0.1), 0.02, 10.0),
        best=("", 1, sure(0.5), 0.02, 10.0),
        next=("", 1, sure(0.3), 0.02, 10.0),
    )
    found = advise_protect(trials, Budget(0.03))
    assert [each.operator for each in found.operators] == ["best", "next", "least"]


def test_what_does_not_fit_into_the_budget_beside_the_others_is_too_dear():
    trials = Planted(
        cheap=("", 1, sure(0.2), 0.02, 10.0),
        dear=("", 1, sure(0.1), 0.02, 10.0),
        huge=("", 1, sure(0.9), 0.5, 10.0),
    )
    found = advise_protect(trials, Budget(0.03))
    assert found.chosen == ("cheap",)
    assert verdicts(found)["dear"] is verdicts(found)["huge"] is Advised.TOO_DEAR
    assert advise_protect(trials, Budget(1.0)).chosen == ("cheap", "dear", "huge")


def test_bytes_are_a_budget_of_their_own():
    trials = Planted(
        small=("", 1, sure(0.1), 0.001, 100.0), large=("", 1, sure(0.9), 0.001, 5_000.0)
    )
    assert advise_protect(trials, Budget(0.03)).chosen == ("large", "small")
    assert advise_protect(trials, Budget(0.03, 1_000.0)).chosen == ("small",)


def test_pools_pay_for_themselves_and_count_as_often_as_they_have_slots():
    """Each pool may be blocked for its own 3 %; one of three slots is in the pool of the model."""
    found = advise_protect(
        Planted(count=("", 2, sure(0.3), 0.02, 1.0), model=("model", 1, sure(0.3), 0.02, 1.0)),
        Budget(0.03),
    )
    assert set(found.chosen) == {"count", "model"}
    benefits = {each.operator: each.benefit.mean for each in found.operators}
    assert benefits == pytest.approx({"count": 0.2, "model": 0.1})
    ends = {each.operator: each.benefit.low for each in found.operators}
    assert ends == pytest.approx(benefits), "sure gains have no interval"
    assert found.cost.blocked == pytest.approx(0.02)


def test_a_benefit_that_may_be_none_is_not_claimed():
    swings = np.where(np.arange(KILLS) % 2, 0.5, -0.45)
    found = advise_protect(Planted(odd=("", 1, swings, 0.001, 1.0)), Budget(0.03))
    assert found.chosen == ()
    (odd,) = found.operators
    assert odd.advised is Advised.CANNOT_TELL
    assert odd.benefit.low < 0 < odd.benefit.high


def test_an_interval_of_few_kills_holds_the_true_benefit_nine_times_in_ten():
    """A bootstrap of six kills holds it eight times in ten."""
    dice, held = np.random.default_rng(5), 0
    for _ in range(400):
        trials = Planted(one=("", 1, dice.normal(0.2, 0.1, 6), 0.001, 1.0))
        trials.kills = 6
        (one,) = advise_protect(trials, Budget(0.03)).operators
        held += one.benefit.low <= 0.2 <= one.benefit.high
    assert 0.87 < held / 400 < 0.94


def test_operators_whose_benefits_overlap_are_called_so():
    swings = np.where(np.arange(KILLS) % 2, 0.3, 0.1)
    alike = Planted(one=("", 1, sure(0.21), 0.001, 1.0), other=("", 1, swings, 0.001, 1.0))
    found = advise_protect(alike, Budget(0.03))
    assert found.operators[0].rivals == ("other",)
    apart = Planted(one=("", 1, sure(0.5), 0.001, 1.0), other=("", 1, swings, 0.001, 1.0))
    assert advise_protect(apart, Budget(0.03)).operators[0].rivals == ()


# Simulated.

RUN = Spec(
    "counting", protocol="partial", rate=60, duration_ms=3_000, interval_ms=200, size="small"
)


def trials(spec=RUN, kills=4, answer=None):
    return KillTrials(spec, ROUGH, answer or find_program(spec).answer, kills, (200, 400))


def test_every_choice_is_tried_under_the_same_kills():
    one, other = trials(), trials()
    assert one.kills_of("") == other.kills_of("")
    assert len(set(one.kills_of(""))) == 4
    assert np.array_equal(one.scores((), ""), other.scores((), ""))
    made = one.made
    one.scores((), "")
    assert one.made == made, "the same runs were made again"


def test_what_one_process_draws_changes_nothing_for_the_others():
    """So one checkpoint more, or one message, does not make another world."""
    drawn = []
    for more in (0, 3):
        world, _ = world_of(RUN, ROUGH, None, 1)
        one, other = (world.new_process(slot, 1, world.coordinator) for slot in (0, 1))
        for _ in range(more):
            world.storage.dice(one).random()
            world.control(one).up.rng.random()
            world.link(one, 1, 1).rng.random()
        ours = (world.storage.dice(other), world.control(other).up.rng, world.link(other, 0, 1).rng)
        drawn.append([dice.random() for dice in ours])
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 3


def test_saving_what_counts_helps_and_costs_something():
    found = advise_protect(trials(), Budget(0.03))
    assert found.chosen == ("count",)
    assert found.saved.high < found.unsaved.low
    assert found.cost.bytes_per_s > 0 < found.cost.blocked < 0.03
    assert found.runs == trials().most == 9


def test_a_dataflow_without_state_has_nothing_to_save():
    spec = Spec("q1", protocol="partial", rate=60, duration_ms=3_000, size="small")
    with pytest.raises(UsageError, match="no operator of q1 keeps state"):
        trials(spec)


def test_an_answer_can_be_that_of_a_run_without_failures():
    known = KnownAnswer(AnswerColumns("counts", ("key",), ("count",), replaces=True), None)
    found = trials(answer=known).scores((), "")
    assert np.array_equal(found, trials().scores((), ""))


# The command.

OWN = """
import snapline as sl

flow = sl.Dataflow("own")
readings = flow.source(sl.generated(lambda n: {"machine": n % 5}, rate=60), name="readings")
counts = readings.key_by("machine").tumbling("30s").running_count(name="count")
counts.checkpoint(every="200ms").sink("counts")
others = readings.key_by("machine").tumbling("30s").running_count(name="other")
others.checkpoint(every="200ms").inputs("keep").sink("others")
"""


def commanded(monkeypatch, capsys, *arguments):
    """Ask for advice; what it prints, and the run behind the command in it."""
    runs = []
    monkeypatch.setattr(command, "command_of", lambda said: runs.append(said) or "THE COMMAND")
    monkeypatch.setattr(sys, "argv", ["snapline", "advise", "protect", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert ended.value.code == 0, told.err
    assert "THE COMMAND" in told.out
    return told.out, runs[0]


def test_the_command_is_for_the_very_run_that_was_advised_on(monkeypatch, capsys):
    asked = "--rate 60 --duration 3s --interval 200ms --kills 6 --away 200ms..400ms --seed 3"
    _, run = commanded(monkeypatch, capsys, "counting", *asked.split())
    assert run["save"] == (("count", "yes"),)
    wanted = {"rate": 60, "duration_ms": 3_000, "interval_ms": 200, "seed": 3, "size": "small"}
    assert {name: run[name] for name in wanted} == wanted
    assert (run["protocol"], run["slots"], run["faults"]) == ("partial", 2, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("my.py:flow --rate 5", "--rate is for workloads; my.py:flow brings its own sources"),
        ("my.py:flow --size small", "--size is for workloads; my.py:flow brings its own sources"),
        ("my.py:flow --set n=3", "only workloads have settings (--set)"),
        ("counting --away 0ms", "--away is from 1ms to"),
        ("counting --kills 5", "--kills"),
    ],
)
def test_what_would_change_nothing_or_could_not_be_is_refused_before_anything_is_simulated(
    arguments, said, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["snapline", "advise", "protect", *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert said in told.err
    assert "simulated runs at most" not in told.err


def test_an_operator_that_wants_its_input_kept_and_is_not_saved_drops_it(
    tmp_path, monkeypatch, capsys
):
    """Else the run is refused: who keeps its inputs has to be saved."""
    (tmp_path / "own.py").write_text(OWN)
    asked = "--duration 3s --interval 200ms --kills 6 --away 200ms..400ms"
    answer = ("--answer", "last counts.count by machine,window")
    flow = f"{tmp_path}/own.py:flow"
    _, run = commanded(monkeypatch, capsys, flow, *asked.split(), *answer)
    assert run["save"] == (("count", "yes"), ("other", "no"))
    assert run["inputs"] == (("other", "drop"),)
