"""Settings of a workload: how they are read, refused, kept and shown."""

import json
import sys
from dataclasses import asdict, replace

import pytest

from snapline import api
from snapline.cli.app import main
from snapline.cli.generate import params_of
from snapline.cli.request import Request
from snapline.errors import UsageError
from snapline.rundir.program import find_program
from snapline.rundir.spec import Spec
from snapline.sim.case import Case
from snapline.workload import WORKLOADS, settings_of
from snapline.workload.common.base import Params
from snapline.workload.common.settings import Setting, read_settings, split_settings, values_of

KNOWN = {
    "rooms": Setting("how many there are", 1_000, 10, least=1),
    "share": Setting("share", 5, 200, "permille", 1, 999),
    "haste": Setting("how late", 2_000, 300, "duration"),
}


@pytest.fixture
def counting(monkeypatch):
    """A workload that has these settings, and does not heed them."""
    changed = replace(WORKLOADS["counting"], settings=KNOWN)
    monkeypatch.setitem(WORKLOADS.own, "counting", changed)


def read(*texts):
    return read_settings("sst", KNOWN, split_settings(texts))


def test_settings_are_read_into_pairs_in_the_order_of_their_names():
    assert read("rooms=7", "haste=1.5s") == (("haste", 1_500), ("rooms", 7))
    assert read_settings("sst", KNOWN, {"share": 30, "haste": 40}) == (
        ("haste", 40),
        ("share", 30),
    )


def test_what_is_not_given_is_as_the_size_says():
    given = read("share=7")
    assert values_of(KNOWN, given, full=True) == {"rooms": 1_000, "share": 7, "haste": 2_000}
    assert values_of(KNOWN, given, full=False) == {"rooms": 10, "share": 7, "haste": 300}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("roms=7",), r"no setting 'roms': did you mean rooms\? it has rooms, share"),
        (("zz=7",), r"sst has no setting 'zz': it has rooms, share, haste"),
        (("rooms",), "NAME=VALUE"),
        (("=3",), "NAME=VALUE"),
        (("rooms=",), "NAME=VALUE"),
        (("rooms=7", "rooms=8"), "rooms is given twice"),
        (("rooms=many",), "the setting rooms is a whole number, not 'many'"),
        (("rooms=-1",), "whole number, not '-1'"),
        (("rooms=0",), "the setting rooms is from 1 on, not 0"),
        (("share=1000",), "the setting share is from 1 to 999, not 1000"),
        (("haste=7",), "the setting haste is written as 500ms"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_word(texts, message):
    with pytest.raises(UsageError, match=message):
        read(*texts)


def test_who_has_no_settings_refuses_any():
    with pytest.raises(UsageError, match="q12 has no settings, so none can be called 'rooms'"):
        settings_of("q12", {"rooms": 7})
    with pytest.raises(UsageError, match="only workloads have settings"):
        settings_of("mine.py:flow", {"rooms": 7})
    assert settings_of("mine.py:flow", {}) == ()
    with pytest.raises(UsageError, match="--set is for workloads"):
        find_program(Spec("mine.py:flow", settings=(("rooms", 7),)))


@pytest.mark.parametrize(
    "kind", [Params, lambda **s: Spec("q12", **s), lambda **s: Case("p", "w", 1, **s)]
)
def test_settings_survive_a_file(kind):
    given = kind(settings=read("rooms=7", "haste=2s"))
    fields = json.loads(json.dumps(asdict(given)))
    back = type(given)(**fields)
    assert back == given
    assert hash(back) == hash(given)


def test_a_spec_and_a_case_hand_them_to_the_generator(counting):
    settings = settings_of("counting", {"rooms": 7})
    assert Spec("counting", settings=settings).params.settings == (("rooms", 7),)
    request = Request(("aligned",), ("counting",), (1,), settings=("rooms=7", "haste=2s"))
    [case] = request.cases()
    assert case.params.settings == (("haste", 2_000), ("rooms", 7))
    assert case.command().endswith("--set haste=2s --set rooms=7")
    assert params_of("counting", 10, "1s", 1, 2, "full", 0, "0ms", ["share=9"]).settings == (
        ("share", 9),
    )


def test_a_sweep_refuses_a_setting_that_one_of_its_workloads_lacks(counting):
    with pytest.raises(UsageError, match="q12 has no settings"):
        Request(("aligned",), ("counting", "q12"), (1,), settings=("rooms=7",)).cases()


def test_stored_input_has_its_own():
    with pytest.raises(UsageError, match="--set is for input that is made now"):
        find_program(Spec("q12", input="anywhere", settings=(("rooms", 7),)))


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "q12", "--set", "rooms=7"),
        ("simulate", "--workload", "q12", "--set", "rooms=7"),
        ("generate", "q12", "--to", "there", "--set", "rooms=7"),
    ],
)
def test_every_command_that_makes_input_takes_them_and_says_what_is_wrong(
    arguments, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "q12 has no settings" in capsys.readouterr().err


def test_a_program_gives_them_by_name(monkeypatch):
    with pytest.raises(UsageError, match="q12 has no settings"):
        api.run("q12", settings={"rooms": 7}, slots=2)


def test_the_list_shows_them(counting, monkeypatch, capsys):
    def shown(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", "list", "workloads", *arguments])
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().out

    table = shown()
    assert "settings of workloads" in table
    row = next(row for row in table.splitlines() if "haste" in row)
    assert row.split() == ["haste", "counting", "2s", "300ms", "how", "late"]
    listed = {row["name"]: row["settings"] for row in json.loads(shown("--json"))["workloads"]}
    assert listed["q12"] == []
    assert [setting["name"] for setting in listed["counting"]] == list(KNOWN)
    assert listed["counting"][1]["most"] == 999
