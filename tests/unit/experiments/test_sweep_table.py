"""What the results of a sweep say: pairs, noise floors, and each column against the first."""

import pytest

from snapline.experiments.sweep_table import against_first, floors, pairs, select


def result(turn, protocol, rate, *, again=False, hot=0):
    return {
        "turn": turn,
        "again": again,
        "varied": {"protocol": protocol, "hot": hot},
        "run": f"{protocol}-{hot}-{turn}-{again}",
        "metrics": {"rate": {"read": rate, "written": rate}},
    }


RESULTS = [
    result(turn, protocol, rate * (1 + turn / 100), again=again)
    for turn in range(1, 7)
    for protocol, rate, again in (
        ("none", 1_000, False),
        ("none", 1_100, True),
        ("aligned", 900, False),
        ("hmnr", 500, False),
    )
]


def test_the_noise_floor_is_how_far_the_first_column_is_from_itself():
    assert floors(RESULTS) == {"records read": pytest.approx(1.1)}
    assert floors([each for each in RESULTS if not each["again"]]) == {}


def test_a_column_within_the_noise_is_not_distinguishable_from_the_first():
    columns = [{"protocol": name, "hot": 0} for name in ("none", "aligned", "hmnr")]
    found = {varied["protocol"]: each[0] for varied, each in against_first(RESULTS, columns)}
    assert found["aligned"].ratio.estimate == pytest.approx(0.9)
    assert found["aligned"].words == "10.0 % slower"  # 1 / 0.9 is more than the floor of 1.1
    assert found["hmnr"].words == "50.0 % slower"
    closer = [
        {**each, "metrics": {"rate": {"read": 960}}}
        if each["varied"]["protocol"] == "aligned"
        else each
        for each in RESULTS
    ]
    found = {varied["protocol"]: each[0] for varied, each in against_first(closer, columns)}
    assert found["aligned"].words == "not distinguishable"


def test_runs_are_pairs_if_they_agree_in_all_that_is_not_named():
    both = [*RESULTS, *(result(1, name, 7, hot=20) for name in ("none", "hmnr"))]
    left, right = pairs(select(both, "protocol=none"), select(both, "protocol=hmnr"))
    assert [(each["turn"], each["varied"]["hot"]) for each in left] == [
        *((1, 0), (1, 20), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0))
    ]
    assert [each["run"].partition("-")[2] for each in left] == [
        each["run"].partition("-")[2] for each in right
    ]
