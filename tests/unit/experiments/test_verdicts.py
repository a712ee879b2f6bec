"""Claims against recorded runs: all verdicts, corrected for the number of comparisons."""

from types import SimpleNamespace

import pytest

from snapline.experiments.papers.catalogue import Paper, PaperMetric
from snapline.experiments.papers.claims import read_claim
from snapline.experiments.papers.verdicts import FigureRuns, Standing, judge_claims

HOLDS, INDICATED, FAILS, UNTESTED = Standing

#: seconds to restart of eight turns, as they were measured on a busy machine
ALIGNED = [0.41, 0.44, 0.39, 0.47, 0.42, 0.40, 0.43, 0.45]
UNCOORDINATED = [0.61, 0.66, 0.55, 0.70, 0.64, 0.58, 0.63, 0.68]
AGAIN = [0.42, 0.43, 0.40, 0.46, 0.42, 0.41, 0.42, 0.45]


def runs(columns, again=AGAIN, metric="restart_s", turns=8):
    """Made-up results: columns are lists of values by protocol; the first one runs twice."""
    first = next(iter(columns))
    results = [
        {
            "turn": turn + 1,
            "again": repeated,
            "varied": {"protocol": name},
            "run": f"{name}-{turn}",
            "metrics": {metric: values[turn]},
        }
        for name, values, repeated in (
            *((name, values, False) for name, values in columns.items()),
            (first, again, True),
        )
        for turn in range(min(turns, len(values)))
    ]
    paper = SimpleNamespace(metric=lambda name: PaperMetric(name, (metric,)))
    return FigureRuns(paper, [{"protocol": name} for name in columns], results)


def standings(found, *claims):
    judged = judge_claims({claim: read_claim(claim) for claim in claims}, found)
    return [each.standing for each in judged]


def only(found, claim):
    [judged] = judge_claims({claim: read_claim(claim)}, found)
    return judged.parts[0]


BOTH = runs({"aligned": ALIGNED, "uncoordinated": UNCOORDINATED})


def test_a_difference_that_is_there_in_all_turns_holds():
    found = only(BOTH, "x[aligned] < x[uncoordinated]")
    assert (found.standing, found.p) == (HOLDS, 1 / 256)
    assert found.ours == "0.425 and 0.635: 0.676 times (0.663 to 0.69)"
    assert only(BOTH, "x[uncoordinated] > 1.3 * x[aligned]").standing is HOLDS


def test_the_opposite_of_what_is_claimed_does_not_hold():
    assert only(BOTH, "x[uncoordinated] < x[aligned]").standing is FAILS
    assert only(BOTH, "x[uncoordinated] > 1.9 * x[aligned]").standing is FAILS
    assert only(BOTH, "x[aligned] within 10% of x[uncoordinated]").standing is FAILS


def test_a_margin_that_the_interval_touches_is_not_decided():
    found = only(BOTH, "x[uncoordinated] > 1.49 * x[aligned]")
    assert (found.standing, found.why) == (UNTESTED, "8 turns do not decide it")
    leaning = only(BOTH, "x[uncoordinated] > 1.47 * x[aligned]")
    assert leaning.standing is INDICATED


def test_five_turns_indicate_only():
    found = only(
        runs({"aligned": ALIGNED, "uncoordinated": UNCOORDINATED}, turns=5),
        "x[aligned] < x[uncoordinated]",
    )
    assert (found.standing, found.sure) == (INDICATED, False)
    assert "it takes 6 to be sure" in found.why
    other = only(
        runs({"aligned": ALIGNED, "uncoordinated": UNCOORDINATED}, turns=5),
        "x[aligned] > x[uncoordinated]",
    )
    assert (other.standing, "points the other way" in other.why) == (UNTESTED, True)


def test_a_difference_within_the_noise_floor_is_none():
    close = [1.02 * value for value in ALIGNED]
    found = runs({"aligned": ALIGNED, "hmnr": close}, again=[value * 1.05 for value in ALIGNED])
    told = only(found, "x[hmnr] > x[aligned]")
    assert (told.standing, told.why) == (
        FAILS,
        "there is no difference of 10 % or more, in 8 turns",
    )
    quiet = runs({"aligned": ALIGNED, "hmnr": close}, again=ALIGNED)
    assert only(quiet, "x[hmnr] > x[aligned]").standing is HOLDS
    # Where no difference is claimed the floor has nothing to say.
    assert only(found, "x[hmnr] <= 1.1 * x[aligned]").standing is HOLDS


def test_a_difference_within_a_wide_noise_floor_is_not_denied():
    """Identical runs are up to 43 % apart: a difference of 30 % may be there, or not."""
    larger = [1.3 * value for value in ALIGNED]
    noisy = [value * (1.43 if turn % 2 else 1 / 1.43) for turn, value in enumerate(ALIGNED)]
    told = only(runs({"aligned": ALIGNED, "hmnr": larger}, again=noisy), "x[hmnr] > x[aligned]")
    assert told.standing is UNTESTED
    assert "the difference lies within the noise floor of" in told.why


def test_the_number_of_comparisons_counts():
    """Six turns have p = 1/64 at best: enough for three comparisons (0.047), not for four (0.0625)."""
    six = runs({"aligned": ALIGNED, "uncoordinated": UNCOORDINATED}, turns=6)
    claims = [f"x[uncoordinated] > {factor} * x[aligned]" for factor in (1.1, 1.2, 1.3, 1.25)]
    assert standings(six, *claims[:3]) == [HOLDS] * 3
    assert standings(six, *claims) == [INDICATED] * 4


def test_zeros_are_counted_turn_by_turn():
    zeros = runs({"aligned": [0] * 8, "hmnr": [1, 2, 0, 3, 1, 2, 1, 1]}, again=[0] * 8)
    assert only(zeros, "x[aligned] <= 0").standing is HOLDS
    assert only(zeros, "x[aligned] <= x[hmnr]").standing is HOLDS
    assert only(zeros, "x[aligned] < x[hmnr]").p == pytest.approx(9 / 256)
    assert only(zeros, "x[hmnr] <= 0").standing is FAILS
    assert "true in 7 of 8 turns" in only(zeros, "x[aligned] < x[hmnr]").ours


def test_a_time_that_was_never_reached_is_longer_than_all_that_were():
    never = [[None]] * 8
    reached = [[value] for value in ALIGNED]
    found = runs({"aligned": reached, "hmnr": never}, again=reached)
    told = only(found, "x[aligned] < x[hmnr]")
    assert (told.standing, told.p) == (HOLDS, 1 / 256)
    assert "0.425 and never" in told.ours
    neither = runs({"aligned": [*never[:2], *reached[2:]], "hmnr": never}, again=reached)
    told = only(neither, "x[aligned] < x[hmnr]")
    assert (told.standing, told.p) == (HOLDS, 1 / 64)
    assert "in 2 more turns neither was reached" in told.ours
    silent = only(runs({"aligned": never, "hmnr": never}, again=never), "x[aligned] < x[hmnr]")
    assert (silent.standing, "never reached on either side" in silent.why) == (UNTESTED, True)


def test_equal_numbers_are_at_most_each_other():
    found = runs({"aligned": [5] * 8, "hmnr": [5] * 8}, again=[5] * 8)
    assert only(found, "x[aligned] <= x[hmnr]").standing is HOLDS
    assert only(found, "x[aligned] < x[hmnr]").standing is FAILS


def test_a_turn_that_lacks_a_side_is_told():
    found = runs({"aligned": ALIGNED, "uncoordinated": UNCOORDINATED[:6]})
    told = only(found, "x[aligned] < x[uncoordinated]")
    assert (told.standing, told.p) == (HOLDS, 1 / 64)
    assert "2 turns not measured on both sides" in told.ours


def test_a_first_column_without_the_figure_has_no_noise_floor():
    found = runs({"none": [None] * 8, "aligned": ALIGNED, "uncoordinated": UNCOORDINATED})
    assert only(found, "x[aligned] < x[uncoordinated]").standing is HOLDS


def test_what_is_not_measured_cannot_be_tested():
    found = runs({"aligned": ALIGNED, "hmnr": UNCOORDINATED})
    found.paper.metric = lambda name: PaperMetric(name, ("bytes.payload",))
    told = only(found, "x[aligned] < x[hmnr]")
    assert (told.standing, told.why) == (UNTESTED, "bytes.payload is not measured")


def test_what_is_found_once_is_never_sure():
    found = runs({"aligned": UNCOORDINATED, "hmnr": ALIGNED}, metric="capacity")
    told = only(found, "x[hmnr] < x[aligned]")
    assert (told.standing, told.why) == (INDICATED, "1 turn: it takes 6 to be sure")


def test_one_part_of_and_that_fails_decides_and_one_part_of_or_that_holds():
    true, false = "x[aligned] < x[uncoordinated]", "x[aligned] > x[uncoordinated]"
    assert standings(BOTH, f"{true} and {false}", f"{true} or {false}") == [FAILS, HOLDS]


def test_what_a_claim_does_not_name_is_averaged_within_each_turn():
    """One query gains half of what the other loses: there is no difference on the whole."""
    results = [
        {
            "turn": turn,
            "again": False,
            "varied": {"flow": flow, "protocol": protocol},
            "run": "r",
            "metrics": {"x": value * (1 + turn / 1000)},
        }
        for turn in range(1, 9)
        for flow, protocol, value in (
            ("q3", "none", 1.0),
            ("q3", "hmnr", 0.5),
            ("q12", "none", 1.0),
            ("q12", "hmnr", 1.8),
        )
    ]
    paper = SimpleNamespace(metric=lambda name: PaperMetric(name, (name,)))
    columns = [each["varied"] for each in results[:4]]
    found = FigureRuns(paper, columns, results)
    told = only(found, "x[hmnr] < 0.95 * x[none]")
    assert told.ours.startswith("0.953 and 1.004: 0.949 times")
    assert only(found, "x[hmnr q3] < 0.6 * x[none q3]").standing is HOLDS
    one = only(found, "x[hmnr q3] < x[none]")
    assert (one.standing, "several columns for one of the other" in one.why) == (UNTESTED, True)


def test_a_paper_finds_its_metrics_by_name_or_by_path():
    known = PaperMetric("bytes", ("bytes.payload", "bytes.headers"), "records_read")
    paper = Paper("p", "t", "a", 2026, "s", {}, {"bytes": known}, "")
    assert paper.metric("bytes") is known
    assert paper.metric("bytes.log") == PaperMetric("bytes.log", ("bytes.log",))
