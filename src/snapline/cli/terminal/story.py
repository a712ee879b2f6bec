"""Tells one run as a story: what broke when, what the coordinator did about it, and how it ended.

It is made from the journal alone, as the diagram is. Commits and replayed messages are many and
alike: they are counted, and told once before whatever comes next.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from snapline.cli.terminal.console import escape
from snapline.core.effects import Commit, Rollback, Scope
from snapline.ids import INITIAL, CheckpointNo, Micros, checkpoint_label
from snapline.journal.entry import Entry, Handled, Happened
from snapline.journal.fault_happenings import FaultBegan
from snapline.journal.happenings import (
    FrameFenced,
    GarbageCollected,
    Happening,
    InputEnded,
    InputSkipped,
    JobFinished,
    JobRecovered,
    JobRunning,
    JobStopped,
    LaunchFailed,
    LineDecided,
    LineFound,
    Measurement,
    MessageReplayed,
    MessagesDiscarded,
    MessagesOvertaken,
    OperatorRaised,
    OutputPublished,
    ReportFenced,
    SlotLaunched,
    SlotRestored,
    SlotRunning,
)
from snapline.journal.loss_happenings import TaskLoss
from snapline.journal.sentences import sentence
from snapline.wording import plural

Untold: TypeAlias = (
    LineDecided
    | LineFound
    | OutputPublished
    | GarbageCollected
    | SlotLaunched
    | SlotRestored
    | MessagesOvertaken
    | MessagesDiscarded
    | InputSkipped
    | TaskLoss
    | Measurement
)
"""Happenings without a line of their own: they are routine, or told as commits and rollbacks."""
Calming: TypeAlias = JobRunning | SlotRunning | JobRecovered | InputEnded | JobFinished
Breaking: TypeAlias = FaultBegan | LaunchFailed | OperatorRaised | JobStopped


def colour_of(what: Happening) -> str:
    """The colour of a line: red for what breaks, green for what is well, yellow for the rest."""
    if isinstance(what, Breaking):
        return "red"
    return "green" if isinstance(what, Calming) else "yellow"


def told(entries: Sequence[Entry]) -> Iterator[str]:
    """The lines of the story, with rich markup."""
    counts: Counter[str] = Counter()
    for entry in entries:
        match entry:
            case Happened(what=MessageReplayed()):
                counts["messages replayed"] += 1
            case Happened(what=ReportFenced() | FrameFenced()):
                counts["late messages of a former life turned away"] += 1
            case Happened(at_us=at_us, what=what) if not isinstance(what, Untold):
                yield from _counted(counts)
                yield _line(at_us, f"[{colour_of(what)}]{escape(sentence(entry))}[/]")
            case Handled(at_us=at_us, effects=effects):
                for effect in effects:
                    if isinstance(effect, Commit):
                        counts["lines committed"] += 1
                    elif isinstance(effect, Rollback):
                        yield from _counted(counts)
                        yield _line(at_us, _rollback(effect))
    yield from _counted(counts)


def _line(at_us: Micros, text: str) -> str:
    return f"{at_us / 1000:>9,.0f} ms  {text}"


def _counted(counts: Counter[str]) -> Iterator[str]:
    for what, n in counts.items():
        yield f"{'':>12}  [dim]{what}: {n:,}[/]"
    counts.clear()


def _rollback(rollback: Rollback) -> str:
    """A rollback in words: how many tasks go back to which checkpoint, the newest checkpoint first."""
    tasks = Counter(rollback.line.checkpoints.values())
    places = [(tasks[no], _place(no)) for no in sorted(tasks, reverse=True)]
    if len(places) == 1:
        who = "every task" if rollback.scope is Scope.ALL else "every lost task"
        return f"rollback: {who} to {places[0][1]}"
    (most, newest), *older = places
    others = "".join(f", {n} to {place.removeprefix('checkpoint ')}" for n, place in older)
    return f"rollback: {plural(most, 'task')} to {newest}{others}"


def _place(checkpoint: CheckpointNo) -> str:
    return (
        "the beginning" if checkpoint == INITIAL else f"checkpoint {checkpoint_label(checkpoint)}"
    )
