"""What people see of a run: events and numbers while it goes on, a summary at its end."""

import io
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from metric_runs import happened, second
from snapline.cli.terminal.live import describe, sparkline, watching_run
from snapline.cli.terminal.summary import print_phases, print_summary, summary
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.fault_happenings import (
    ConnectionCut,
    CoordinatorKilled,
    CoordinatorResumed,
    FaultEnded,
    FaultMissed,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
    Slowed,
    StoreUnreliable,
)
from snapline.journal.happenings import (
    GarbageCollected,
    JobFinished,
    JobRecovered,
    JobRunning,
    JobStopped,
    LineDecided,
    LineFound,
    OutputPublished,
    SlotLost,
    SlotRunning,
)
from snapline.judge.verdict import Verdict
from snapline.metrics.checkpointing.history import Phases
from snapline.metrics.costs import (
    CheckpointFigures,
    CheckpointTimes,
    ResourceFigures,
    StoreRequests,
    Timed,
    phase_figures,
)
from snapline.metrics.figures import Figures, Percentiles, figures_of
from snapline.metrics.reliability import LineageFigures, OutputLatency, PhaseFigures
from snapline.metrics.second import Volume
from snapline.rundir.directory import RunDirectory
from snapline.wording import latency, size

CALM = {"epoch": 2, "checkpoints": 16, "lines": 4, "volume": Volume(wire=3_400_000, log=12)}
LINE = {"stored": 16, "skipped": 2, "back_s": 1.25, "back_records": 4200}


def console(*, terminal: bool, width: int = 120) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, highlight=False)


def written(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_events_are_said_in_words(terminal):
    shown = console(terminal=terminal)
    with watching_run(shown) as told:
        told.event(Happened(1, COORDINATOR, 1, LineDecided(1, 1, {})))
        told.event(Happened(2, COORDINATOR, 1, LineDecided(1, 2, {})))  # begins an epoch
        told.event(happened(12.25, SlotLost(1, 1)))
        told.event(happened(12.26, LineFound(**LINE)))
        told.event(happened(18, JobRecovered(lost_us=0, recovery_s=1.44)))
    text = written(shown)
    assert "12.25 s  the coordinator gives up slot/1 as lost; 1 line committed before" in text
    assert "line found: 14 of 16 checkpoints, 2 skipped; back by 1.2 s and about 4,200 rec" in text
    assert "recovered in 1.4 s" in text


def test_on_a_terminal_the_numbers_of_the_last_second_stand_in_a_table():
    shown = console(terminal=True)
    with watching_run(shown) as told:
        told.second(second(11, 20, **CALM))
        drawn = written(shown)
    for text in ("in/s", "p99", "backlog", "epoch", "12 s", "1,000", "3.4 MB/s", "20 ms", "█"):
        assert text in drawn


def test_a_narrow_terminal_shows_fewer_numbers_and_cuts_none():
    shown = console(terminal=True, width=80)
    with watching_run(shown) as told:
        told.second(second(123_456, 20_000, **CALM, read=1_234_567, backlog=999_999))
    drawn = written(shown)
    assert "…" not in drawn
    for text in ("123457 s", "1,234,567", "20.2 s", "epoch", "999,999", "3.4 MB/s"):
        assert text in drawn


def test_elsewhere_numbers_are_a_plain_line_every_five_seconds():
    shown = console(terminal=False)
    with watching_run(shown) as told:
        for at_s in range(11):
            told.second(second(at_s, None if at_s == 9 else 20, **CALM))
    first, last = written(shown).splitlines()
    assert first.startswith("    5.00 s  in/s 1,000, out/s 1,000, p50 20 ms, p99 20 ms, backlog 0,")
    assert "p50 -, p99 -" in last
    assert "\x1b" not in written(shown)


@pytest.mark.parametrize("ends_with", [KeyboardInterrupt, ValueError])
def test_whatever_ends_a_run_the_cursor_comes_back_and_the_table_goes(ends_with):
    shown = console(terminal=True)
    view = watching_run(shown)
    view.__enter__().second(second(0, 20))
    assert view.__exit__(ends_with, ends_with(), None) is False, "it goes on to the caller"
    text = written(shown)
    assert text.count("\x1b[?25h") == text.count("\x1b[?25l") == 1  # the cursor: shown, hidden
    assert text.endswith("\x1b[2K")  # the last line of the table was erased


def test_words_in_brackets_are_no_markup():
    shown = console(terminal=False)
    with watching_run(shown) as told:
        told.event(happened(1, JobStopped(problem="no [bold] line")))
    assert "stops: no [bold] line" in written(shown)


def test_what_only_figures_need_is_not_said():
    assert describe(happened(1, OutputPublished(number=1, rows={})), 0) is None
    assert describe(happened(1, GarbageCollected(snapshots=3)), 0) is None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (happened(1, ProcessPaused(pids=(7,)), "slot/1"), "slot/1 stops responding (process 7)"),
        (happened(1, ProcessContinued(), "slot/1"), "slot/1 responds again"),
        (happened(1, Slowed(fault=None, delay_ms=500), "slot/1"), "slot/1 is slower by 500 ms"),
        (
            happened(1, ConnectionCut(fault=None, others=(2,)), "slot/1"),
            "slot/1 is cut off from slot/2",
        ),
        (
            happened(1, ConnectionCut(fault=None, others=(0, None)), "slot/1"),
            "is cut off from slot/0, the coordinator",
        ),
        (happened(1, FaultEnded(fault="cut slot=1 ...")), "'cut slot=1 ...' is over"),
        (
            happened(1, StoreUnreliable(fault=None, percent=30), "store"),
            "the store fails 30 % of all calls",
        ),
        (happened(1, FaultMissed(fault="delay ..."), "slot/1"), "'delay ...' finds nobody"),
        (
            happened(1, CoordinatorKilled(fault="kill driver at=1s")),
            "the coordinator is killed (kill driver at=1s)",
        ),
        (happened(1, CoordinatorResumed()), "the coordinator resumes the run"),
    ],
)
def test_faults_and_their_ends_are_told(entry, said):
    assert said in describe(entry, 0)


def test_a_slot_that_comes_back_alone_is_told_apart():
    assert describe(happened(1, JobRunning()), 0) == "all slots run (epoch 1)"
    assert "slot/1 runs again" in describe(happened(1, SlotRunning(), "slot/1"), 0)


def test_numbers_have_as_many_digits_as_they_deserve():
    assert [latency(ms) for ms in (None, 0.04, 0.24, 9.96, 20.4, 9_999, 12_345)] == [
        "-",
        "<0.1 ms",
        "0.2 ms",
        "10.0 ms",
        "20 ms",
        "9999 ms",
        "12.3 s",
    ]
    assert [size(n) for n in (0, 999, 1_500, 250_000, 3_400_000, 5e15)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "250 kB",
        "3.4 MB",
        "5000.0 TB",
    ]


def test_the_highest_bar_is_full_and_nothing_is_a_line():
    assert sparkline([0, 50, 100]) == "▁▄█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


@dataclass
class Finished:
    """A run that is over."""

    figures: Figures
    verdict: Verdict
    rows: dict = field(default_factory=lambda: {"results": 12_000})
    directory: RunDirectory = RunDirectory(Path("/tmp/q12-aligned-calm-otter"))  # noqa: RUF009


def broken_run() -> Figures:
    """The figures of a run in which two slots were lost."""
    entries = [
        happened(0, JobRunning()),
        happened(2.5, ProcessKilled(pids=(77,)), "slot/1"),
        happened(2.6, SlotLost(1, 1)),
        happened(3.1, JobRunning(), epoch=2),
        happened(4, SlotLost(0, 1)),
        *(Happened(1, COORDINATOR, 2, second(n, **CALM).measured()) for n in range(2)),
    ]
    return figures_of(entries, {})


def test_a_summary_has_latency_failures_and_bytes():
    found = dict(summary(broken_run(), rows=12_000))
    assert found["output"].startswith("12,000 rows published")
    assert found["records"] == "2,000 read, 2,000 written; 1,000 per second"
    assert found["latency"] == "written p50 20 ms, p99 20 ms"
    assert found["failures"] == (
        "2 slots lost, noticed after 0.10 s, all running again 0.50 s later, "
        "recovered after > the run, > the run"
    )
    assert found["bytes"] == "log 24 B, wire 6.8 MB; 0.0 B per record"
    assert "checkpoints" not in found


def test_a_summary_tells_how_checkpoints_spent_their_time_and_what_processes_used():
    phases = phase_figures([Phases(0, 1_000, 20_000, 300, 45_000, 50)])
    used = ResourceFigures(
        {"driver": 0.5, "slot/0": 2.0, "slot/1": 1.0},
        {"driver": 9_000_000, "slot/0": 80_000_000, "slot/1": 70_000_000},
        0.75,
        StoreRequests(1, 2, 3, 4, 5, 6),
        7,
    )
    figures = replace(broken_run(), checkpoint_phases_ms=phases, resources=used)
    found = dict(summary(figures, rows=1))
    assert found["phases"] == (
        "start delay 1.0 ms, alignment 20 ms, blocked 0.3 ms, background 45 ms, reporting <0.1 ms "
        "(on average)"
    )
    assert found["resources"] == (
        "CPU 3.0 s of slots (0.8 s to generate input), 0.5 s of the driver; a slot takes up to "
        "80.0 MB of memory"
    )


def test_at_rate_max_a_summary_says_that_there_is_no_latency():
    figures = replace(broken_run(), latency_ms=None)
    assert dict(summary(figures, rows=1))["latency"].startswith("not measured: at rate max")


def test_a_summary_tells_checkpoints_and_what_was_read_again():
    figures = replace(
        broken_run(),
        read_again=4_057,
        committed_latency_ms=Percentiles(900.0, 1800.0, 2000.0),
        checkpoints=CheckpointFigures(
            *(33, 0, 5, 2, 21.2, 0, 5_500, Timed.ROUND),
            CheckpointTimes(9.5, 9.2, 128.0),
            500.0,
            1.0,
        ),
    )
    found = dict(summary(figures, rows=1))
    assert found["records"].startswith("2,000 read, 2,000 written (4,057 read again)")
    assert found["latency"].endswith("published p50 900 ms, p99 1800 ms")
    assert found["checkpoints"] == (
        "33 stored (5.5 kB), 5 skipped, 2 useless; a round took 9.2 ms, at most 128 ms"
    )


@pytest.mark.parametrize(
    ("kept", "word"), [("yes", "kept"), ("no", "broken"), ("unknown", "unknown")]
)
def test_a_summary_ends_with_the_verdict(capsys, kept, word):
    print_summary(Finished(broken_run(), Verdict(kept, "a [reason]")))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("q12-aligned-calm-otter: ")
    assert lines[-1] == f"{word}: a [reason]"


def test_a_summary_of_lineage_shows_each_phase_and_never_rounds_up(capsys):
    control = PhaseFigures(3, 100.0, 20.0, None, 100.0, None, None, 0, 5_000)
    failure = PhaseFigures(3, 99.9999, 20.0, None, 99.9999, None, None, 5_000, 9_000)
    phases = {"control": control, "failure": failure}
    latency_ms = OutputLatency(15.0, 12.0, 39.0, 40.0)
    print_phases(LineageFigures(3, 99.9999, 20.0, latency_ms, 99.5, None, None, 31.0, phases))
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert told == [
        "phase from events reliable correct throughput latency p50 max",
        "control 0.0 s 3 100 % 100 % 20/s - -",
        "failure 5.0 s 3 99.9999 % 99.9999 % 20/s - -",
        "run 3 99.9999 % 99.5 % 20/s 12 ms 40 ms",
        "failure cost 31 ms above the mean latency before the fault",
    ]


@pytest.mark.parametrize("protocol", ["none", "partial"])
def test_where_output_is_public_at_once_nobody_speaks_of_lines(protocol):
    found = dict(summary(broken_run(), rows=12, protocol=protocol))
    assert found["output"].endswith("decisions made")
    assert "line" not in found["output"]
    shown = console(terminal=False)
    with watching_run(shown, protocol) as told:
        told.event(Happened(1, COORDINATOR, 1, LineDecided(1, 1, {})))
        told.event(happened(12.25, SlotLost(1, 1)))
        told.second(second(14, 20, **CALM))
        told.event(happened(18, JobFinished()))
    text = written(shown)
    assert "as lost\n" in text
    assert "decisions 4" in text
    assert "lines" not in text
