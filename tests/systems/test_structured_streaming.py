"""Structured Streaming, really killed: is it exactly once? And is a sink caught that is not?"""

import json

import pytest
from typer.testing import CliRunner

import snapline.systems.structured_streaming.adapter as adapter
from snapline.cli.app import app
from snapline.systems.harness.processes import lives
from snapline.systems.structured_streaming.files import logged_files, present_files
from snapline.systems.structured_streaming.shapes import QueryShape, shape_of

pytestmark = pytest.mark.spark

ALMOST = "structured-streaming sink=at-least-once"
TWICE = {"at-most-once": "no", "at-least-once": "yes", "exactly-once": "no"}


def ran(tmp_path, flow, faults, system="structured-streaming", **options):
    """Run it by the command line: (exit code, what it printed as JSON)."""
    at_once = {} if "rate" in options else {"rate": "max", "records": "600"}
    given = {"duration": "2s", "size": "small", **at_once, **options}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    command = ["run", flow, "--system", system, "--faults", faults, "--json", *words]
    result = CliRunner().invoke(app, [*command, "--runs", str(tmp_path)], catch_exceptions=False)
    told = json.loads(result.stdout)
    hit = [pid for event in told["events"] for pid in event["what"].get("pids", ())]
    assert not any(map(lives, hit))
    return result.exit_code, told, tmp_path / told["run"] / "system" / "sink"


def test_under_a_driver_kill_the_file_sink_is_exactly_once(tmp_path):
    code, told, sink = ran(tmp_path, "sst", "kill driver on=round")
    assert set(told["guarantees"].values()) == {"yes"}
    assert (code, told["kept"]) == (0, "yes")
    assert told["because"].startswith("600 of 600 events were counted once")
    assert "was under way when the driver was killed and was run again" in told["because"]
    assert told["metrics"]["lost"] == told["metrics"]["system"]["restarts"] == 1
    # What the first attempt wrote, the log does not name: who lists the directory counts it twice.
    unread = set(present_files(sink)) - set(logged_files(sink))
    assert ("in no entry of the sink's log" in told["because"]) == bool(unread)


def test_an_at_least_once_sink_is_caught(tmp_path):
    code, told, _ = ran(tmp_path, "q1", "kill driver on=round", ALMOST)
    assert (code, told["kept"]) == (1, "no")
    assert told["guarantees"] == TWICE
    assert told["because"].startswith("duplicate bid ")
    assert "came out 2 times" in told["because"]
    assert "this sink does not ask whether it was written" in told["because"]


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["mst", "q1", "q3", "q8", "q12"])
def test_every_workload_survives_a_driver_kill_exactly_once(tmp_path, flow):
    code, told, _ = ran(tmp_path, flow, "kill driver on=round", rate="400", duration="4s")
    assert (code, set(told["guarantees"].values())) == (0, {"yes"})
    assert told["metrics"]["lost"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["sst", "mst"])
def test_the_witness_names_event_window_outputs_and_fault(tmp_path, flow):
    code, told, _ = ran(tmp_path, flow, "kill driver on=round", ALMOST)
    assert (code, told["guarantees"]) == (1, TWICE)
    for word in ("duplicate: ", "GET ", "window ", "position ", "active: kill driver on=round"):
        assert word in told["because"]


@pytest.mark.slow
def test_two_kills_at_a_time_and_a_pause_change_nothing(tmp_path):
    faults = "pause driver at=1s for=3s; kill driver at=6s; kill driver at=30s"
    code, told, _ = ran(tmp_path, "sst", faults, rate="200", duration="4s")
    assert (code, told["metrics"]["lost"]) == (0, 2)


@pytest.mark.slow
def test_an_executor_that_dies_changes_nothing(tmp_path):
    faults = "kill executor=1 at=3s; kill executor=0 at=9s"
    code, told, _ = ran(tmp_path, "mst", faults, "structured-streaming executors=2", rate="200")
    assert (code, told["metrics"]["lost"], told["metrics"]["system"]["restarts"]) == (0, 2, 0)
    assert "others did again" in told["because"]


@pytest.mark.slow
def test_a_network_that_is_slow_gone_or_broken_changes_nothing(tmp_path):
    faults = (
        "delay slot=0 300ms at=2s for=3s; cut slot=0 from=coordinator at=6s for=3s; "
        "cut slot=0 from=coordinator at=12s"
    )
    code, told, _ = ran(tmp_path, "sst", faults, "structured-streaming executors=2", rate="200")
    assert code == 0
    whats = [event["what"] for event in told["events"]]
    met = [what["connections"] for what in whats if what["type"] == "ConnectionsDisturbed"]
    assert len(met) == 3
    assert min(met) >= 2


@pytest.mark.slow
def test_what_is_behind_the_watermark_is_dropped_and_the_verdict_says_so(tmp_path, monkeypatch):
    right = shape_of
    monkeypatch.setattr(
        adapter,
        "shape_of",
        lambda *work: QueryShape(right(*work).sink, right(*work).window_ms, delay_ms=0),
    )
    monkeypatch.setattr(adapter, "FILES_PER_BATCH", 1)
    code, told, _ = ran(tmp_path, "sst", "", rate="400", duration="4s", set="disorder=2s")
    assert (code, told["guarantees"]["at-least-once"]) == (1, "no")
    assert "rows behind its watermark: it has no late output" in told["because"]
