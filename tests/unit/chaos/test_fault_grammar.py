"""The grammar of faults: what it means, that it comes back, and that nothing passes in silence."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.chaos.catalogue import GRAMMAR, where
from snapline.chaos.faults import (
    FORMS,
    KINDS,
    At,
    BeforeEffect,
    Cut,
    Damage,
    DamageRecord,
    Delay,
    During,
    Kill,
    KillCoordinator,
    KillDriver,
    KillExecutor,
    LaunchFailing,
    LaunchSlow,
    Partition,
    Pause,
    PauseCoordinator,
    PauseDriver,
    StoreFailing,
    StoreOutage,
    StoreSlow,
    cut,
    describe,
    parse,
    start_ms,
)
from snapline.chaos.targets import check
from snapline.durations import write_duration
from snapline.errors import FaultSyntaxError

MEANINGS: dict[str, Any] = {
    "kill slot=1 at=800ms": Kill((1,), At(800)),
    "kill slot=0,2 at=1s": Kill((0, 2), At(1_000)),
    "kill slot=1 at=1s for=3s": Kill((1,), At(1_000), 3_000),
    "kill pool=model at=1s": Kill((), At(1_000), pool="model"),
    "kill pool=model at=1s for=3s": Kill((), At(1_000), 3_000, "model"),
    "kill slot=1 step=137": Kill((1,), BeforeEffect(137)),
    "kill slot=1 on=recovery": Kill((1,), During("recovery")),
    "kill slot=1 on=round": Kill((1,), During("round")),
    "kill executor=1 at=1s": KillExecutor(1, 1_000),
    "kill driver at=1s": KillDriver(At(1_000)),
    "kill driver on=round": KillDriver(During("round")),
    "kill coordinator at=1s for=300ms": KillCoordinator(1_000, 300),
    "pause slot=1 at=1s for=2s": Pause(1, 1_000, 2_000),
    "pause coordinator at=1s for=2s": PauseCoordinator(1_000, 2_000),
    "pause driver at=1s for=2s": PauseDriver(1_000, 2_000),
    "cut slot=1 from=2 at=1s for=500ms": Cut(1, 2, 1_000, 500),
    "cut slot=1 from=coordinator at=1s for=500ms": Cut(1, None, 1_000, 500),
    "cut slot=0,1 from=2,coordinator at=1s for=5s": Partition((0, 1), (2, None), 1_000, 5_000),
    "cut slot=1 from=2 at=1s": Cut(1, 2, 1_000),
    "delay slot=2 500ms at=30s for=10s": Delay(2, 500, 30_000, 10_000),
    "store outage at=1s for=500ms": StoreOutage(1_000, 500),
    "store slow 50ms at=1s for=1s": StoreSlow(50, 1_000, 1_000),
    "store failing 30% at=1s for=1s": StoreFailing(30, 1_000, 1_000),
    "damage slot=1 at=1s": Damage(1, 1_000),
    "damage decision at=1s": DamageRecord("decision", False, 1_000),
    "lose decision at=1s": DamageRecord("decision", True, 1_000),
    "damage manifest at=1s": DamageRecord("manifest", False, 1_000),
    "lose manifest at=1s": DamageRecord("manifest", True, 1_000),
    "launch failing slot=1 at=1s for=1s": LaunchFailing(1, 1_000, 1_000),
    "launch slow slot=1 2s at=1s for=1s": LaunchSlow(1, 2_000, 1_000, 1_000),
}

SLOT = st.integers(0, 20)
TIME = st.integers(0, 10_000_000)
SPAN = st.integers(1, 10_000_000)
SLOTS = st.lists(SLOT, min_size=1, max_size=4, unique=True).map(tuple)
FAULT = st.one_of(
    st.builds(
        Kill, SLOTS, st.builds(At, TIME) | st.sampled_from(["recovery", "round"]).map(During)
    ),
    st.builds(Kill, SLOT.map(lambda slot: (slot,)), st.builds(BeforeEffect, st.integers(1, 9_999))),
    st.builds(Pause, SLOT, TIME, SPAN),
    st.builds(Cut, SLOT, st.none() | st.integers(21, 30), TIME, st.just(0) | SPAN),
    st.builds(cut, SLOTS, st.sampled_from([(None,), (21,), (None, 22), (23, 21)]), TIME, SPAN),
    st.builds(KillExecutor, SLOT, TIME),
    st.builds(KillDriver, st.builds(At, TIME) | st.builds(During, st.just("round"))),
    st.builds(PauseDriver, TIME, SPAN),
    st.builds(StoreFailing, st.integers(1, 100), TIME, SPAN),
    st.builds(Delay, SLOT, SPAN, TIME, SPAN),
    st.builds(KillCoordinator, TIME, SPAN),
    st.builds(PauseCoordinator, TIME, SPAN),
    st.builds(StoreOutage, TIME, SPAN),
    st.builds(StoreSlow, SPAN, TIME, SPAN),
    st.builds(Damage, SLOT, TIME),
    st.builds(DamageRecord, st.sampled_from(["decision", "manifest"]), st.booleans(), TIME),
    st.builds(LaunchFailing, SLOT, TIME, SPAN),
    st.builds(LaunchSlow, SLOT, SPAN, TIME, SPAN),
)


@pytest.mark.parametrize("statement", MEANINGS)
def test_a_statement_means_a_fault_and_the_fault_says_the_statement(statement):
    assert parse(statement) == (MEANINGS[statement],)
    assert str(MEANINGS[statement]) == statement


def test_what_people_are_shown_is_the_whole_grammar():
    shown = [statement for statement, _ in GRAMMAR]
    assert sorted(shown) == sorted(MEANINGS)
    assert {fault.kind for fault in MEANINGS.values()} == set(KINDS)
    assert len(FORMS) <= len(GRAMMAR)


@given(st.lists(FAULT, max_size=5).map(tuple))
def test_faults_come_back_from_their_own_words(faults):
    assert parse(describe(faults)) == faults
    assert parse("\n".join(f"  {fault}  # why" for fault in faults)) == faults


def test_a_file_of_faults_may_have_comments_and_empty_lines():
    text = """
    # a bad day; really
    kill slot=1 at=1s ; ; store outage at=2s for=1s   # both

    damage slot=0 at=3s;
    """
    assert parse(text) == (Kill((1,), At(1_000)), StoreOutage(2_000, 1_000), Damage(0, 3_000))
    assert parse("") == parse(" ; # nothing") == ()


def test_keys_stand_in_any_order():
    assert parse("cut for=5ms at=0ms from=2 slot=1") == (Cut(1, 2, 0, 5),)
    assert parse("delay at=1s 20ms for=1s slot=0") == (Delay(0, 20, 1_000, 1_000),)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("0ms", 0), ("1.5s", 1_500), ("2m", 120_000), ("0.25m", 15_000), ("90s", 90_000)],
)
def test_durations_have_units_and_may_have_fractions(text, ms):
    assert parse(f"damage slot=0 at={text}") == (Damage(0, ms),)


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0ms"), (800, "800ms"), (90_000, "90s"), (60_000, "1m"), (1_500, "1500ms")]
)
def test_a_duration_is_said_in_the_largest_unit_that_fits(ms, text):
    assert write_duration(ms) == text


@pytest.mark.parametrize(
    ("statement", "word", "said"),
    [
        ("kil slot=1 at=1s", "kil", "kill, pause, cut, delay, store, damage, lose or launch"),
        ("slot=1 kill at=1s", "slot=1", "begins with what is to happen"),
        (
            "kill slot=1 att=800ms",
            "att=800ms",
            "expected slot=, at=, step=, on=, for=, pool= or executor=",
        ),
        ("kill driver at=1s for=2s", "for=2s", "for= is not known here"),
        ("kill slot=1 at=1s at=2s", "at=2s", "twice"),
        ("kill slot=1 at=1s step=3", "step=3", "at= and step= do not go together"),
        ("kill slot=1 at=1", "at=1", "a duration has a number and a unit"),
        ("kill slot=1 at=1d", "at=1d", "ms, s, m or h"),
        ("kill slot=1 at=-1s", "at=-1s", "ms, s, m or h"),
        ("kill slot=1 at=1.0005s", "at=1.0005s", "whole number of milliseconds"),
        ("kill slot=1 at=", "at=", "a time, such as 800ms"),
        ("kill slot=1,1 at=1s", "slot=1,1", "twice"),
        ("kill slot=-1 at=1s", "slot=-1", "slots, such as 1 or 0,2"),
        ("kill slot=٣ at=1s", "slot=٣", "slots, such as 1 or 0,2"),
        ("kill slot=1, at=1s", "slot=1,", "slots, such as 1 or 0,2"),
        ("kill slot=all at=1s", "slot=all", "slots, such as 1 or 0,2"),
        ("kill slot=0,2 step=4", "slot=0,2", "one slot"),
        ("kill slot=1 step=0", "step=0", "a number, such as 137"),
        ("kill slot=1 on=fire", "on=fire", "recovery or round"),
        ("kill worker at=1s for=1s", "worker", "expected coordinator"),
        ("kill coordinator slot=1 at=1s for=1s", "slot=1", "slot= is not known here"),
        ("kill coordinator at=1s for=0ms", "for=0ms", "longer than 0"),
        ("pause slot=1,2 at=1s for=1s", "slot=1,2", "one slot"),
        ("cut slot=1 from=driver at=1s for=1s", "from=driver", "coordinator or a slot"),
        ("cut slot=1 from=2,2 at=1s for=1s", "from=2,2", "named twice"),
        ("store failing 0% at=1s for=1s", "0%", "from 1% to 100%"),
        ("store failing 101% at=1s for=1s", "101%", "from 1% to 100%"),
        ("store failing often at=1s for=1s", "often", "a percentage, such as 30%"),
        ("kill driver at=1s for=1s", "for=1s", "for= is not known here"),
        ("kill executor=0,1 at=1s", "executor=0,1", "one slot"),
        ("store slow outage at=1s for=1s", "outage", "a duration"),
        ("store outage 50ms at=1s for=1s", "50ms", "key=value words only"),
        ("delay slot=1 0ms at=1s for=1s", "0ms", "longer than 0"),
        ("damage slot=1 at=1s =5", "=5", "is not known here"),
        ("lose ledger at=1s", "ledger", "decision or manifest"),
        ("launch slow slot=1 0ms at=1s for=1s", "0ms", "longer than 0"),
    ],
)
def test_what_is_wrong_is_shown_under_the_word(statement, word, said):
    with pytest.raises(FaultSyntaxError) as error:
        parse(f"kill slot=0 at=1s; {statement}")
    problem, shown, carets = str(error.value).split("\n")
    assert said in problem
    assert shown == f"  {statement}"
    start, stop = carets.index("^"), len(carets)
    assert shown[start:stop] == word


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "kill",
            "expected slot=SLOTS at=TIME, slot=SLOT step=COUNT, slot=SLOTS on=PHASE, slot=SLOTS",
        ),
        ("kill slot=1", "expected at=TIME, step=COUNT, on=PHASE or at=TIME for=SPAN"),
        ("kill at=1s", "expected slot=SLOTS"),
        ("pause slot=1 at=1s", "expected for=SPAN"),
        ("damage slot=1", "expected at=TIME"),
        ("store at=1s for=1s", "expected outage, slow or failing"),
        ("store slow at=1s for=1s", "expected a duration"),
        ("cut slot=1 from=1 at=1s for=1s", "cannot be cut from itself"),
        ("cut slot=0,1 from=2,1 at=1s for=1s", "cannot be cut from itself"),
        ("cut slot=0,1 from=2,1", "expected at=TIME for=SPAN or at=TIME"),
    ],
)
def test_what_is_missing_is_shown_behind_the_statement(statement, said):
    with pytest.raises(FaultSyntaxError) as error:
        parse(statement)
    problem, shown, carets = str(error.value).split("\n")
    assert said in problem
    assert (shown, carets) == (f"  {statement}", " " * (2 + len(statement)) + "^")


@pytest.mark.parametrize(
    "statement",
    [
        "kill slot=0,3 at=1s",
        "pause slot=3 at=1s for=1s",
        "cut slot=3 from=0 at=1s for=1s",
        "cut slot=3 from=coordinator at=1s for=1s",
        "cut slot=0 from=3 at=1s for=1s",
        "cut slot=0,1 from=3,coordinator at=1s for=1s",
        "kill executor=3 at=1s",
        "delay slot=3 1s at=1s for=1s",
        "damage slot=3 at=1s",
        "launch failing slot=3 at=1s for=1s",
        "launch slow slot=3 1s at=1s for=1s",
    ],
)
def test_a_slot_that_the_job_does_not_have_is_refused(statement):
    faults = parse(f"kill coordinator at=1s for=1s; {statement}")
    check(faults, 4)
    with pytest.raises(FaultSyntaxError, match=r"no slot 3.*slots 0 to 2") as error:
        check(faults, 3)
    assert statement in str(error.value)


def test_every_form_says_where_it_works_and_when_it_strikes():
    wheres = {statement: where(fault) for statement, fault in MEANINGS.items()}
    simulated = re.compile(r"kill .*step=|(damage|lose) (decision|manifest)|launch ")
    assert [s for s, there in wheres.items() if there == "simulator"] == [
        s for s in MEANINGS if simulated.match(s)
    ]
    assert wheres.pop("kill executor=1 at=1s") == "simulator, clusters"
    assert [s for s, there in wheres.items() if there == "everywhere"] == [
        s for s in MEANINGS if "driver" in s
    ]
    assert set(wheres.values()) == {"everywhere", "simulator", "simulator, real runs"}
    timed = {statement: start_ms(fault) for statement, fault in MEANINGS.items()}
    assert {statement for statement, ms in timed.items() if ms is None} == {
        statement for statement in MEANINGS if "at=" not in statement
    }
    assert timed["kill slot=1 at=800ms"] == 800


def test_the_page_about_faults_explains_every_form():
    page = (Path(__file__).parents[3] / "docs" / "faults.md").read_text()
    explained = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert sorted(explained) == sorted(MEANINGS)
    for example in re.findall(r'(?:--faults |parse\()"([^"]+)"', page):
        assert parse(example)
