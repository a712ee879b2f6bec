"""One run, told: what broke when, what the coordinator did about it, and how it ended.

Made from the journal alone, so it is as true as the diagram. Commits and replayed messages are many and
alike: they are counted, and told once before whatever comes next.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from snapline.cli.terminal.console import escape
from snapline.core.effects import Commit, Rollback, Scope
from snapline.ids import INITIAL, CheckpointNo, Micros, checkpoint_label
from snapline.journal.entry import Entry, Handled, Happened
from snapline.wording import plural

#: what is told of the things that happen, and in which colour
TOLD = {
    "killed": ("red", "{actor} is killed ({how})"),
    "coordinator-killed": ("red", "{actor} is killed"),
    "paused": ("red", "{actor} stops responding"),
    "cut": ("red", "{actor} is cut off from {other}"),
    "outage": ("red", "{actor} is away for {for_ms} ms"),
    "slowed": ("red", "{actor} is slower by {delay_ms} ms"),
    "failing": ("red", "{actor} fails: {percent} % of all calls"),
    "damaged": ("red", "{actor}: its stored checkpoint {checkpoint} is damaged"),
    "spoiled": ("red", "{actor}: {record} is {how}"),
    "starts badly": ("red", "trouble begins: {fault}"),
    "launch failed": ("red", "{actor}: the process that was started for it dies"),
    "late": ("yellow", "{actor}: a process registers that had been given up"),
    "sent away": ("yellow", "{actor}: a process registers too late, and is sent away"),
    "continued": ("yellow", "{actor} responds again"),
    "healed": ("yellow", "it is over: {fault}"),
    "back": ("yellow", "{actor} is back"),
    "lost": ("yellow", "{actor} gives up slot/{slot} as lost"),
    "deposed": ("yellow", "{actor} finds that another one took over"),
    "coordinator-resumed": ("yellow", "{actor} resumes from its durable memory"),
    "running": ("green", "all tasks run"),
    "finished": ("green", "all input is processed and all output published"),
    "stopped": ("red", "{actor} stops: {problem}"),
}


def told(entries: Sequence[Entry]) -> Iterator[str]:
    """The lines of the story, with rich markup."""
    counts: Counter[str] = Counter()
    for entry in entries:
        match entry:
            case Happened(at_us, actor, _, what, detail) if what in TOLD:
                yield from _counted(counts)
                colour, words = TOLD[what]
                text = words.format_map(_Known(actor, detail))
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


class _Known(dict[str, object]):
    """The details of an entry as people know them; a journal need not have all of them."""

    def __init__(self, actor: str, detail: Mapping[str, Any]) -> None:
        super().__init__(detail, actor=actor)
        if isinstance(detail.get("other"), int):
            self["other"] = f"slot/{detail['other']}"
        if "checkpoint" in detail:
            self["checkpoint"] = checkpoint_label(detail["checkpoint"])

    def __missing__(self, key: str) -> str:
        return "?"


def _rollback(rollback: Rollback) -> str:
    """How many tasks go back to which checkpoint, newest first."""
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
