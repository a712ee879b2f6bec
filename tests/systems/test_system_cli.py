"""`snapline run --system`: exit codes, what is said and refused, and what `snapline runs` makes of it."""

import json

import pytest
from toy_system import Toy, use_toy_clock
from typer.testing import CliRunner

import snapline as sl
from snapline.cli import systems as cli_systems
from snapline.cli.app import app, main
from snapline.errors import UsageError

SMALL = ("--size", "small", "--slots", "2", "--rate", "max", "--records", "300", "--duration", "1s")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    use_toy_clock(monkeypatch)


@pytest.fixture
def toy(monkeypatch):
    toy = Toy()
    monkeypatch.setattr(cli_systems, "system_of", lambda text: toy)
    return toy


@pytest.fixture
def snapline(monkeypatch, tmp_path, capsys):
    """A command as it is typed: (exit code, results, messages)."""

    def call(*arguments):
        line = ["snapline", *arguments, "--runs", str(tmp_path)]
        monkeypatch.setattr("sys.argv", line)
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return call


def run(snapline, *more):
    return snapline("run", "sst", "--system", "toy", *SMALL, *more)


def test_a_run_says_what_happens_and_ends_with_the_verdict(toy, snapline):
    code, out, err = run(snapline, "--faults", "kill driver on=round; pause driver at=1s for=100ms")
    assert code == 0
    for said in (
        "starting toy",
        "toy runs, and takes input",
        "toy is killed (kill driver on=round; processes 1, 2)",
        "toy is down, and will be started again",
        "toy stops responding (pause driver at=1s for=100ms; process",
        "toy responds again",
        "all input is given to toy: 300 records",
        "all input is processed",
    ):
        assert said in err
    assert "kept: 300 of 300 events" in out
    assert "exactly-once yes" in out
    assert "1 kill" in out
    assert "100 %" in out


def test_exit_codes_and_json_say_the_same(toy, snapline):
    toy.repeats = True
    code, out, _ = run(snapline, "--json", "--faults", "kill driver on=round")
    told = json.loads(out)
    assert (code, told["kept"], told["system"]) == (1, "no", "toy")
    assert told["guarantees"]["at-least-once"] == "yes"
    assert told["metrics"]["lineage"]["reliability"] < 100


def test_less_can_be_asked_but_not_nothing(toy, snapline):
    toy.repeats = True
    more = ("--faults", "kill driver on=round", "--guarantee")
    assert run(snapline, *more, "at-least-once")[0] == 0
    code, _, err = run(snapline, *more, "nothing")
    assert code == 2
    assert "held to something" in err


def test_a_system_that_fails_is_unknown(toy, snapline):
    toy.fails = "no more heap"
    code, out, err = run(snapline)
    assert code == 3
    assert "unknown: no more heap" in out
    assert "toy stops: no more heap" in err


@pytest.mark.parametrize(
    "given",
    [
        ("--protocol", "aligned"),
        ("--interval", "5s"),
        ("--spares", "1"),
        ("--input", "somewhere"),
        ("--reference",),
        ("--publish-lag", "0"),
        ("--full-journal",),
        ("--listen", "127.0.0.1"),
        ("--heartbeat", "200ms"),
        ("--silence", "2s"),
        ("--chaos", "seed=1"),
    ],
)
def test_what_means_nothing_to_a_system_is_refused_even_with_its_default(toy, snapline, given):
    code, _, err = run(snapline, *given)
    assert code == 2
    assert f"{given[0]} is for Snapline's own engine, not for toy" in err
    assert toy.calls == []


def test_a_run_of_a_system_is_listed_shown_and_read(toy, snapline):
    run(snapline)
    assert "toy" in snapline("runs")[1]
    assert "300 of 300 events" in snapline("runs", "show", "last")[1]
    code, out, _ = snapline("runs", "output", "last", "--json", "--limit", "2")
    assert code == 0
    assert [sorted(json.loads(row)) for row in out.splitlines()] == [
        ["count", "ids", "position", "resource", "window", "written"]
    ] * 2
    assert snapline("runs", "output", "last", "--uncommitted")[0] == 2


def test_judged_again_it_is_the_same_with_the_fault_that_was_active(toy, snapline, tmp_path):
    toy.repeats = True
    told = json.loads(run(snapline, "--json", "--faults", "kill driver on=round")[1])
    code, out, _ = snapline("validate", "last", "--json")
    again = json.loads(out)
    assert (code, again["kept"]) == (1, "no")
    assert told["because"].startswith(again["because"].rstrip("."))
    assert "active: kill driver on=round" in again["because"]
    (tmp_path / told["run"] / "output" / "000000.parquet").write_bytes(b"PAR1")
    code, _, err = snapline("validate", "last")
    assert (code, "000000.parquet cannot be read" in err) == (2, True)


def test_a_run_of_a_system_is_not_resumed_and_not_opened_as_one_of_ours(toy, snapline, tmp_path):
    run(snapline)
    code, _, err = snapline("run", "--resume", "last")
    assert code == 2
    assert "only Snapline's own are resumed" in err
    with pytest.raises(UsageError, match="its output is in"):
        sl.open_run("last", runs=tmp_path)


def test_help_names_the_option():
    help_page = CliRunner().invoke(app, ["run", "--help"], terminal_width=200).stdout
    assert "--system" in help_page
    assert (
        'snapline run sst --system structured-streaming --faults "kill driver on=round"'
        in help_page
    )
