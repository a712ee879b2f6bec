"""The failures of a run explained: the steps of each, its checkpoint graph, and the space-time diagram."""

from collections.abc import Sequence
from functools import partial
from html import escape

from snapline.ids import Micros
from snapline.journal.entry import Entry, Happened, Stamped
from snapline.journal.fault_happenings import FaultHappening
from snapline.journal.happenings import (
    JobFinished,
    JobRecovered,
    JobRunning,
    JobStopped,
    LineFound,
    MessageReplayed,
    SlotLost,
)
from snapline.journal.sentences import sentence
from snapline.report.charts.checkpoint_graph import checkpoint_graph, drawn_checkpoints
from snapline.report.charts.waterfall import waterfall
from snapline.report.page.html import DataTable, figure
from snapline.report.run.failure_steps import ExplainedFailure, explained_failures
from snapline.report.run.reported import ReportedRun
from snapline.report.spacetime.draw import draw, interesting_window
from snapline.wording import plural

SHOWN_MAX = 8
"""So many failures of a run are explained one by one; of others there is a table in the figures."""
MESSAGES_MAX = 400
"""A space-time diagram with more messages shows less time."""
STORY_MAX = 60


def failures(run: ReportedRun, id: str) -> list[str]:
    """Each failure as a waterfall and as a checkpoint graph."""
    found = explained_failures(run)
    parts = [part for n, each in enumerate(found[:SHOWN_MAX], 1) for part in _one(run, each, n, id)]
    if len(found) > SHOWN_MAX:
        parts.append(f"<p>{len(found) - SHOWN_MAX} more failures are in the figures below.</p>")
    return parts


def _one(run: ReportedRun, failure: ExplainedFailure, number: int, id: str) -> list[str]:
    slots = ", ".join(map(str, failure.slots))
    name = f"Failure {number}: slot {slots} lost at {failure.lost_s:.2f} s"
    parts = []
    if failure.steps:
        since = "seconds since the fault" if failure.from_fault else "seconds since detection"
        table = DataTable(
            f"{run.name}-failure-{number}",
            ("step", "from s", "to s", "took s", "ended", "meaning"),
            [
                (s.name, s.begin_s, s.end_s, s.end_s - s.begin_s, not s.open, s.meaning)
                for s in failure.steps
            ],
        )
        chart = partial(waterfall, steps=failure.steps, title=name, origin=since)
        begun, last = "the fault" if failure.from_fault else "detection", failure.steps[-1]
        note = f"From {begun} {last.meaning.rpartition('; ')[2]}, step by step: {last.end_s:.2f} s."
        if not failure.from_fault:
            note += (
                " Nobody made this slot fail on purpose, so nothing is known of the time before."
            )
        if last.open:
            note += " The run was over before that."
        parts.append(figure(f"{id}failure-{number}", name, note, chart, table))
    if failure.rollback is not None and run.topology is not None and failure.rollback.stored:
        parts.append(_graph(run, failure, number, id))
    return parts


def _graph(run: ReportedRun, failure: ExplainedFailure, number: int, id: str) -> str:
    rollback, topology = failure.rollback, run.topology
    assert rollback is not None
    assert topology is not None
    line = rollback.line.checkpoints
    skipped = sum(
        meta.checkpoint > line.get(meta.task, meta.checkpoint) for meta in rollback.stored
    )
    drawn = drawn_checkpoints(rollback, topology)
    rows = [
        (
            m.task,
            m.checkpoint,
            m.forced,
            m.checkpoint == line.get(m.task),
            _beyond(m.checkpoint, line.get(m.task)),
        )
        for m in drawn
    ]
    table = DataTable(
        f"{run.name}-graph-{number}",
        ("task", "checkpoint", "forced", "on the line", "skipped"),
        rows,
    )
    chart = partial(
        checkpoint_graph,
        rollback=rollback,
        topology=topology,
        title=f"Checkpoint graph of failure {number}, with its recovery line",
    )
    beyond = plural(skipped, "checkpoint lies", "checkpoints lie")
    heading, note = (
        "The line",
        "The newest checkpoints of each task in the order of storing, what was ",
    )
    note += f"sent between them, and the recovery line: {beyond} beyond it, stored in vain."
    if len(line) < len(topology.tasks):
        heading = "Where the lost slot began again"
        note = "The newest checkpoints of each task of the lost slot, and those to which they went back. "
        note += "All others went on, so what was sent since may be lost, or come twice."
    if more := len(rollback.stored) - len(drawn):
        known = plural(more, "more checkpoint is", "more checkpoints are")
        note += f" {known} in the history of checkpoints, and neither drawn nor in the table."
    return figure(f"{id}graph-{number}", heading, note, chart, table)


def _beyond(checkpoint: int, chosen: int | None) -> bool:
    return chosen is not None and checkpoint > chosen


Told = FaultHappening | JobRunning | LineFound | SlotLost | JobRecovered | JobFinished | JobStopped


def story(run: ReportedRun) -> str:
    """What happened, in sentences."""
    told = [
        entry
        for entry in run.entries
        if isinstance(entry, Happened) and isinstance(entry.what, Told)
    ]
    if not told:
        return ""
    lines = "".join(
        f"<li><time>{entry.at_us / 1e6:.2f} s</time><span>{escape(sentence(entry))}</span></li>"
        for entry in told[:STORY_MAX]
    )
    more = f"<p>and {len(told) - STORY_MAX:,} more events.</p>" if len(told) > STORY_MAX else ""
    return f'<ol class="story">{lines}</ol>{more}'


def diagram(run: ReportedRun, id: str) -> str:
    """The space-time diagram around the first rollback, or the end of the run."""
    if run.topology is None or not run.end_s or len(run.topology.tasks) > 40:
        return ""
    since_us, until_us = _window(run.journal)
    title = f"{run.name}, {since_us / 1e6:.2f} s to {until_us / 1e6:.2f} s"
    picture = draw(run.journal, run.topology, title=title, since_us=since_us, until_us=until_us)
    brief = not any(isinstance(entry, Stamped) for entry in run.journal)
    note = "Every task has a line, time runs to the right. " + (
        "This run wrote no messages down (they are drawn of runs with --full-journal): checkpoints, lines, "
        "crashes and restarts are shown."
        if brief
        else "Arrows are messages; those that are replayed and those that are orphans stand out."
    )
    return (
        f'<figure id="{escape(id)}diagram"><figcaption><h3>Space-time diagram</h3><p>{escape(note)}</p>'
        '</figcaption><div class="spacetime" tabindex="0" role="region" '
        f'aria-label="space-time diagram">{picture}</div></figure>'
    )


def _window(journal: Sequence[Entry]) -> tuple[Micros, Micros]:
    """The time that is drawn: around the first rollback, and not more than can be seen."""
    since_us, until_us = interesting_window(journal)
    if not any(isinstance(entry, Stamped) for entry in journal):
        return since_us, until_us  # where no message was written down, none is drawn
    sent = [
        entry.at_us
        for entry in journal
        if since_us <= entry.at_us <= until_us
        and (
            isinstance(entry, Stamped)
            or (isinstance(entry, Happened) and isinstance(entry.what, MessageReplayed))
        )
    ]
    return since_us, min(until_us, sent[MESSAGES_MAX]) if len(sent) > MESSAGES_MAX else until_us
