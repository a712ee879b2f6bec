"""One run, told: what broke when, what the coordinator did about it, and how it ended.

Made from the journal alone, so it is as true as the diagram. Commits and replayed messages are many and
alike: they are counted, and told once before whatever comes next.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.markup import escape

from snapline.core.effects import Commit, Rollback, Scope
from snapline.core.messages import RecoveryLine
from snapline.ids import INITIAL, Micros, checkpoint_label
from snapline.journal.entry import Entry, Handled, Happened

#: what is told of the things that happen, and in which colour
TOLD = {
    "killed": ("red", "{actor} is killed"),
    "coordinator-killed": ("red", "{actor} is killed"),
    "paused": ("red", "{actor} stops responding"),
    "cut": ("red", "{actor} is cut off"),
    "outage": ("red", "the store is away"),
    "slowed": ("red", "the store is slow"),
    "damaged": ("red", "a stored object is damaged"),
    "continued": ("yellow", "{actor} responds again"),
    "healed": ("yellow", "{actor} is connected again"),
    "recovered": ("yellow", "the store is back"),
    "lost": ("yellow", "{actor} gives up a slot as lost"),
    "deposed": ("yellow", "{actor} finds that another one took over"),
    "coordinator-resumed": ("yellow", "{actor} resumes from its durable memory"),
    "running": ("green", "all tasks run"),
    "finished": ("green", "all input is processed and all output published"),
    "stopped": ("red", "{actor} stops before the end"),
}


def told(entries: Sequence[Entry]) -> Iterator[str]:
    """The lines of the story, with rich markup."""
    counts: Counter[str] = Counter()
    for entry in entries:
        match entry:
            case Happened(at_us, actor, _, what, detail) if what in TOLD:
                yield from _counted(counts)
                colour, words = TOLD[what]
                text = words.format(actor=actor) + _details(detail)
                yield _line(at_us, f"[{colour}]{escape(text)}[/]")
            case Happened(what="replayed"):
                counts["messages replayed"] += 1
            case Happened(what="fenced"):
                counts["late messages of a former life turned away"] += 1
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


def _details(detail: Mapping[str, Any]) -> str:
    return "".join(f", {key} {value}" for key, value in detail.items())


def _rollback(rollback: Rollback) -> str:
    who = "every task" if rollback.scope is Scope.ALL else "the lost tasks"
    return f"rollback: {who} to {_summary(rollback.line)}"


def _summary(line: RecoveryLine) -> str:
    """A line in short: how many tasks go back to which checkpoint."""
    tasks = Counter(line.checkpoints.values())
    labels = {no: "the beginning" if no == INITIAL else checkpoint_label(no) for no in tasks}
    if list(tasks) == [INITIAL]:
        return labels[INITIAL]
    if len(tasks) == 1:
        return f"the line {next(iter(labels.values()))}"
    parts = [f"{labels[no]} ({tasks[no]}x)" for no in sorted(tasks, reverse=True)]
    return f"the line {', '.join(parts)}"
