"""Which lines a run keeps whole, found from its ledger alone.

A coordinator keeps the last few lines that share no checkpoint (`recovery/kept_lines.py`), and deletes only
what none of them needs. Which lines these are follows from its decisions: so the decisions are read again
here, in their order, and the same rule is applied to them, from the lines on that the first of them names.
A coordinator that took the run over knew no more than the last line of the one before it; so only the
decisions of the last author count. Those that are needed for this are never collected.

A line is called by the number of the first decision that has it. Several decisions may have the same line,
because an epoch can begin at it; the last of them says what was public then, and from which counters its
tasks went on.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.core.protocol import Options
from snapline.engine.coordinator.decider import line_of
from snapline.engine.coordinator.ledger import (
    Decision,
    check_anchor,
    decision_before,
    decision_key,
    from_the_end,
    read_decision,
)
from snapline.engine.options import protocol_options
from snapline.errors import ObjectDamaged, ObjectMissing, UsageError
from snapline.ids import ChannelId, CheckpointNo, Epoch, Seq, TaskId
from snapline.protocols import PROTOCOLS
from snapline.recovery.kept_lines import KeptLines, is_behind
from snapline.rundir.directory import RunDirectory
from snapline.rundir.past import damaged
from snapline.rundir.spec import OWN, Spec, spec_of
from snapline.storage.api import Store


@dataclass(frozen=True, slots=True)
class KeptLine:
    """A line from which a run can go on, and all that was decided about it."""

    number: int  # of the first decision that has it
    decision: Decision  # the last decision that has it, with the chains of all tasks
    newest: bool  # it is the line of the last decision of all
    begun: tuple[Decision, ...] = ()  # those with which the known epochs began, oldest first

    @property
    def snapshots(self) -> tuple[CheckpointMeta, ...]:
        """All checkpoints whose snapshots have to be loaded, those that others build on included."""
        return tuple(meta for chain in self.decision.chains.values() for meta in chain)

    def epoch_of(self, task: TaskId, channel: ChannelId, seq: Seq) -> Epoch:
        """The epoch in which a message before the line was sent; 0 if that was before all that is known.

        An epoch begins at a line, and from there on numbers are used again: so the last epoch that began
        before a number has the message that counts.
        """
        sent = ((each.epoch, each.chains[task]) for each in self.begun)
        known = (e for e, chain in sent if (chain[-1].sent.get(channel, 0) if chain else 0) < seq)
        return max(known, default=0)


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the ledger of a run says about its lines."""

    last: Decision
    decisions: tuple[int, ...]  # the numbers of those from which this is known
    lines: tuple[KeptLine, ...]  # oldest first; the last one is the line of the last decision


def spec_with_lines(directory: RunDirectory) -> Spec:
    """What a run was asked to do. Raises UsageError if it is one without lines."""
    spec = spec_of(directory)
    if spec.system != OWN:
        raise UsageError(f"{directory.name} is a run of {spec.system}: it has no lines of ours")
    if PROTOCOLS[spec.protocol].publishes_at_once:
        raise UsageError(
            f"{directory.name} ran under {spec.protocol}, which has no lines: tasks are "
            "saved each by itself, or never"
        )
    return spec


def kept_lines(directory: RunDirectory) -> tuple[KeptLine, ...]:
    """The lines that a run keeps, oldest first. Raises UsageError, and RunDamaged if nobody can tell."""
    spec = spec_with_lines(directory)
    try:
        ledger = read_ledger(directory, spec)
    except (ObjectMissing, ObjectDamaged) as error:
        raise damaged(directory, error) from error
    return ledger.lines if ledger is not None else ()


def read_ledger(directory: RunDirectory, spec: Spec) -> Ledger | None:
    """Read the decisions that tell which lines are kept; None if nothing was ever decided.

    Raises ObjectMissing or ObjectDamaged, with the name of the decision.
    """
    entries = _last_entries(directory)
    if not entries:
        return None
    last, chains = entries[-1], dict(entries[0].chains)
    begun, whole = False, []
    for entry in entries:
        chains = {**chains, **entry.chains}
        begun = begun or entry.author == last.author
        if begun:
            whole.append(replace(entry, whole=True, chains=chains))
    count = protocol_options(spec.options, Options()).kept_lines
    numbers = tuple(entry.number for entry in entries)
    return Ledger(whole[-1], numbers, _kept(whole, count))


def _last_entries(directory: RunDirectory) -> list[Decision]:
    """The decisions of the last author, oldest first, behind those on which the first of them builds.

    A resume reads one more than it depends on, and so does this: before a whole one must be the right one.
    """
    store, run = directory.files, directory.identity
    found = from_the_end(store, lambda last: _entries(store, read_decision(store, last, run)))
    return found or []


def _entries(store: Store, entry: Decision) -> list[Decision]:
    author, entries = entry.author, [entry]
    anchor = entry.anchor
    while entry.number > anchor.number:
        before = decision_before(store, entry)
        entries.append(before)
        if before.author != author and entry.whole:
            break
        entry = before
    else:
        check_anchor(entry, anchor)
    return entries[::-1]


def _kept(decisions: list[Decision], count: int) -> tuple[KeptLine, ...]:
    """Apply the rule by which a coordinator keeps lines to all that it has decided."""
    found: dict[tuple[tuple[TaskId, CheckpointNo], ...], tuple[int, Decision]] = {}
    line = line_of(dict(decisions[0].chains))
    kept = KeptLines(line, count)
    kept.lines = list(decisions[0].lines) or kept.lines  # it need not be the first of its author
    for decision in decisions:
        before, line = line, line_of(dict(decision.chains))
        if is_behind(line, before):
            kept.go_back(line)
        else:
            kept.advance(line)
        number, _ = found.get(_key(line), (decision.number, decision))
        found[_key(line)] = number, decision
    newest, lines = _key(line), {_key(each): None for each in (*kept.lines, line)}
    first = decisions[0]
    begun = (first, *(now for then, now in pairwise(decisions) if now.epoch > then.epoch))
    if lost := [key for key in lines if key not in found]:
        raise ObjectMissing(f"the decision that has the line {dict(lost[0])} is gone")
    return tuple(KeptLine(*found[key], key == newest, begun) for key in lines)


def _key(line: RecoveryLine) -> tuple[tuple[TaskId, CheckpointNo], ...]:
    return tuple(sorted(line.checkpoints.items()))


def decision_path(directory: RunDirectory, number: int) -> Path:
    """The file of a decision."""
    return directory.storage.untroubled.path(decision_key(number))


def line_called(directory: RunDirectory, lines: tuple[KeptLine, ...], number: int) -> KeptLine:
    """The kept line of this number. Raises UsageError, which names those that there are."""
    for line in lines:
        if line.number == number:
            return line
    known = ", ".join(str(line.number) for line in lines)
    raise UsageError(
        f"{directory.name} does not keep line {number}: it keeps {known or 'no line'}; "
        f"'snapline checkpoints {directory.name}' shows them"
    )
