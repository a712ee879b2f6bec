"""The text form of a journal: what comes back, what is legal to lose, what is an error."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapline.batch import Batch
from snapline.core import effects, events, messages
from snapline.core.effects import (
    Abandon,
    Block,
    CancelTimer,
    Commit,
    Continue,
    Deliver,
    Forward,
    Halt,
    Order,
    Persist,
    Record,
    Rollback,
    Scope,
    Seal,
    SetTimer,
    Snapshot,
    Unblock,
)
from snapline.core.events import (
    AbortRound,
    Command,
    CommandArrived,
    JobStarted,
    LocalCheckpoint,
    MarkerArrived,
    MarkerSighted,
    MessageArrived,
    NextRound,
    Paused,
    Progressed,
    Quiet,
    RoundDeadline,
    SnapshotStored,
    SnapshotUnreadable,
    Started,
    StoreFailed,
    TasksLost,
    Timer,
    TimerFired,
    TriggerRound,
)
from snapline.core.messages import CheckpointMeta, Marker, Message, RecoveryLine, Stamp
from snapline.errors import ObjectDamaged, UsageError
from snapline.ids import ChannelId, CheckpointNo, Seq, TaskId, first_checkpoint
from snapline.journal import entry, fault_happenings, happenings, loss_happenings
from snapline.journal.codec import digest, lines, read
from snapline.journal.entry import COORDINATOR, Built, Handled, Happened, Stamped
from snapline.journal.fault_happenings import (
    ConnectionCut,
    ConnectionsDisturbed,
    CoordinatorKilled,
    CoordinatorResumed,
    FaultEnded,
    FaultMissed,
    LaunchTroubled,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
    RecordSpoiled,
    Slowed,
    SnapshotDamaged,
    StoreAway,
    StoreBack,
    StoreUnreliable,
)
from snapline.journal.happenings import (
    CheckpointMoments,
    CheckpointTimed,
    CoordinatorDeposed,
    FrameFenced,
    GarbageCollected,
    InputEnded,
    InputSkipped,
    JobFinished,
    JobInterrupted,
    JobRecovered,
    JobRunning,
    JobStopped,
    JobStopping,
    JobSuspended,
    LaunchFailed,
    LineDecided,
    LineFound,
    MessageReplayed,
    MessagesDiscarded,
    MessagesOvertaken,
    OperatorRaised,
    OutputPublished,
    ProcessNotStarted,
    RegisteredLate,
    ReportFenced,
    SecondMeasured,
    SentAway,
    SlotCutOff,
    SlotLaunched,
    SlotLeaving,
    SlotLeft,
    SlotLost,
    SlotRestored,
    SlotRunning,
    StoreAwaited,
    SystemDown,
    SystemProgressed,
)
from snapline.journal.loss_happenings import (
    GroupLost,
    RowsMissed,
    StaleDropped,
    StaleRowsDropped,
    TaskLoss,
)
from snapline.protocols.none import NONE

HAPPENING_MODULES = (fault_happenings, happenings, loss_happenings)
A, B = TaskId("a/0"), TaskId("b/0")
AB = ChannelId("a/0>b/0")
C1 = first_checkpoint(1)
MESSAGE = Message(AB, 3, 1, Batch({}, 3), b"\x00\xffh", 17)
META = CheckpointMeta(
    B,
    C1,
    sent={},
    received={AB: 3},
    epoch=1,
    incarnation=1,
    channel_state={AB: (3, 5)},
    offsets={0: 12, 7: 9},
    position=4,
    forced=True,
    parent=0,
    bytes=99,
    digest="d",
)


@dataclass(frozen=True, slots=True)
class Reckon(Command):
    checkpoint: CheckpointNo
    task: TaskId
    soon: bool


@dataclass(frozen=True, slots=True)
class Gather(Command):
    through: Mapping[ChannelId, Seq]
    groups: tuple[tuple[TaskId, ...], ...]


@dataclass(frozen=True, slots=True)
class Due(Timer):
    checkpoint: CheckpointNo
    tasks: tuple[TaskId, ...]


PROTOCOL = replace(NONE, name="reckoning", commands=(Reckon, Gather), timers=(Due,))
LINE = RecoveryLine({A: C1, B: 0})

TASK_EVENTS = (
    Started(),
    MessageArrived(MESSAGE),
    MarkerSighted(AB, Marker(C1, overtaking=True)),
    MarkerArrived(AB, Marker(C1)),
    CommandArrived(TriggerRound(C1)),
    CommandArrived(AbortRound(C1)),
    CommandArrived(Reckon(C1, A, True)),
    CommandArrived(Gather({AB: 3}, ((A, B), ()))),
    Progressed(40, 1, 0),
    TimerFired(LocalCheckpoint()),
    TimerFired(Due(C1, (A, B))),
)
COORDINATOR_EVENTS = (
    JobStarted(C1),
    SnapshotStored(META),
    StoreFailed(B, C1),
    SnapshotUnreadable(B, C1),
    TasksLost((A, B)),
    Paused(A, {AB: 3}, {}),
    Quiet(),
    TimerFired(NextRound()),
    TimerFired(RoundDeadline(C1)),
)
TASK_EFFECTS = (
    Deliver(MESSAGE),
    Block(AB),
    Unblock(AB),
    Snapshot(C1, b"memo", forced=True, open=True),
    Record(AB, 4),
    Record(AB),
    Seal(C1),
    Abandon(C1),
    Forward(Marker(C1), overtake=True),
    Halt(),
    Continue(),
    SetTimer(LocalCheckpoint(), 20),
    CancelTimer(Due(C1, ())),
)
COORDINATOR_EFFECTS = (
    Order((A,), TriggerRound(C1)),
    Persist(b"\x80"),
    Commit(LINE),
    Rollback(LINE, Scope.LOST),
    Rollback(LINE),
)
HAPPENINGS = (
    ProcessKilled(),
    ProcessKilled("kill slot=1 at=2s", 3, (4711, 4712)),
    CoordinatorKilled("kill driver at=2s"),
    CoordinatorResumed(),
    ProcessPaused("pause slot=1 ...", 1, (4711,)),
    ProcessContinued("pause slot=1 ...", 1),
    FaultMissed("ü"),
    ConnectionCut(None, (0, None)),
    Slowed("delay ...", 20),
    FaultEnded("delay ..."),
    StoreAway("store outage ...", 700),
    StoreBack("store outage ..."),
    StoreUnreliable("store failing ...", 30),
    SnapshotDamaged("damage ...", C1),
    RecordSpoiled("lose manifest ...", "manifest 3", True),
    LaunchTroubled("launch failing ..."),
    ConnectionsDisturbed("delay ...", 3, 500),
    SlotLaunched(1),
    LaunchFailed(1),
    RegisteredLate(1),
    SentAway(1),
    ProcessNotStarted("it ended"),
    OperatorRaised("ValueError", ""),
    SlotCutOff(2, (0, 1)),
    SlotCutOff(2, None),
    SlotLost(1, 2),
    SlotLeaving(1, 2),
    SlotLeft(1, 2),
    SlotRestored(2),
    SlotRunning(),
    TaskLoss(A, C1, 500, 2_500),
    JobRunning(),
    SystemDown(),
    LineFound(3, 1, 0.5, 40),
    LineFound(3, 1, 2.0, None),
    LineDecided(4, 2, {A: C1, B: 0}),
    OutputPublished(4, {B: (0, 12)}),
    GarbageCollected(3),
    StoreAwaited("it is away"),
    JobRecovered(1.25, 2_000_000),
    InputEnded(100),
    JobFinished(),
    JobStopped("no line is left"),
    JobInterrupted(),
    JobStopping(),
    JobSuspended(7),
    JobSuspended(None),
    CoordinatorDeposed(),
    MessageReplayed(MESSAGE),
    ReportFenced(1, 2, "Stored"),
    FrameFenced(0, AB, (1, 1, 2)),
    MessagesOvertaken(AB, 3),
    MessagesDiscarded(AB, 3, 40),
    InputSkipped(1, 5, 40),
    StaleDropped(A, 7),
    GroupLost(A, "join/left", 64),
    RowsMissed(AB, 12, False),
    RowsMissed(AB, 0, True),
    StaleRowsDropped(A, 9),
    CheckpointTimed(A, C1, CheckpointMoments(C1, None, 10, 12, 13, 40)),
    CheckpointTimed(B, C1, CheckpointMoments(None, 9, 10, 12, 13, 40)),
    SecondMeasured(
        *(3, 2, 10, 9, None, 4, 1, {"wire": 7}, ((40, 9), (1200, 1)), 20.5, None, (2500,)),
        *(800_000, 3_100_000, None, ((0, 7, 6, None, 20.5, None), (1, 3, 3, 5, None, 1.0))),
        ((2, 5, 20.5, None), (1, None, None, 40.0)),
        *({"driver": (90, 7)}, {"puts": 2}),
    ),
    SystemProgressed({"records": 3}),
)
JOURNAL = (
    Built(0, "a/0", 1, 1, "7:a/0", None, 17),
    Built(0, COORDINATOR, 1, 1, "7:c", b""),
    Built(0, COORDINATOR, 2, 1, "7:c:2", b"memo", line=(META, META)),
    *(Handled(5, "b/0", 1, 1, event, TASK_EFFECTS) for event in TASK_EVENTS),
    *(Handled(6, COORDINATOR, 1, 1, event, COORDINATOR_EFFECTS) for event in COORDINATOR_EVENTS),
    Stamped(7, "a/0", 1, 1, AB, 3, Stamp(b"\x01", log=True), 3),
    *(Happened(8, "slot/1", 1, what) for what in HAPPENINGS),
)


def test_every_kind_of_entry_comes_back_equal():
    assert tuple(read(lines(JOURNAL), PROTOCOL)) == JOURNAL


@pytest.mark.parametrize("event", [CommandArrived(Reckon(C1, A, True)), TimerFired(Due(C1, ()))])
def test_what_only_another_protocol_says_cannot_be_read(event):
    written = list(lines([Handled(5, "b/0", 1, 1, event, ())]))
    assert list(read(written, PROTOCOL))
    with pytest.raises(ObjectDamaged, match="nothing that may stand here is called"):
        list(read(written, NONE))


def test_the_sample_journal_contains_every_class_that_a_journal_may_hold():
    def classes(value):
        if is_dataclass(value):
            yield type(value).__name__
            for field in fields(value):
                yield from classes(getattr(value, field.name))
        elif isinstance(value, tuple):
            for each in value:
                yield from classes(each)

    known = [
        name
        for module in (messages, events, effects, entry, *HAPPENING_MODULES)
        for name, kind in vars(module).items()
        if isinstance(kind, type) and is_dataclass(kind) and kind not in (Command, Timer)
    ]
    known += [kind.__name__ for kind in (*PROTOCOL.commands, *PROTOCOL.timers)]
    assert sorted(dict.fromkeys(classes(JOURNAL))) == sorted(dict.fromkeys(known))
    assert all(kind.__name__ in known for kind in get_args(entry.Entry))


def test_containers_come_back_with_their_own_types():
    (happened,) = read(lines([Happened(9, COORDINATOR, 1, OutputPublished(4, {B: (0, 12)}))]))
    assert happened.what.rows == {B: (0, 12)}
    (handled,) = read(lines([Handled(6, COORDINATOR, 1, 1, SnapshotStored(META), ())]))
    assert handled.event.meta.offsets == {0: 12, 7: 9}
    assert handled.event.meta.channel_state == {AB: (3, 5)}
    (rollback,) = read(lines([Handled(6, COORDINATOR, 1, 1, Quiet(), (Rollback(LINE),))]))
    assert rollback.effects[0].scope is Scope.ALL


def test_a_message_loses_its_records_but_not_its_size():
    message = Message(AB, 3, 1, Batch.of(key=[1, 2, 3]), b"\x00\xffh", 17)
    written = list(lines([Handled(5, "b/0", 1, 1, MessageArrived(message), ())]))
    assert json.loads(written[1])["event"]["message"]["batch"] == {"records": 3, "bytes": 24}
    (handled,) = read(written)
    batch = handled.event.message.batch
    assert (len(batch), batch.nbytes, dict(batch.columns)) == (3, 24, {})
    assert handled.event.message.header == b"\x00\xffh"


def test_a_journal_that_was_read_is_written_as_it_was():
    once = list(lines(JOURNAL))
    assert list(lines(read(once, PROTOCOL))) == once
    assert digest(read(once, PROTOCOL)) == digest(JOURNAL)


def test_the_first_line_names_the_version():
    assert next(lines(JOURNAL)) == '{"journal":5}\n'


def test_every_line_is_one_ascii_line():
    assert all(line.isascii() and line.count("\n") == 1 for line in lines(JOURNAL))


def test_the_digest_tells_journals_apart_by_any_field_and_by_order():
    other = [*JOURNAL[:-2], Happened(8, "slot/2", 1, JobRunning()), JOURNAL[-1]]
    swapped = [*JOURNAL[:-2], JOURNAL[-1], JOURNAL[-2]]
    assert len({digest(JOURNAL), digest(other), digest(swapped)}) == 3


def test_a_numpy_number_is_written_as_a_number():
    stamped = Stamped(np.int64(7), "a/0", 1, 1, AB, np.int64(3), Stamp(), 3)
    assert list(read(lines([stamped]))) == [stamped]


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ('{"type":"SlotMislaid"}', "may stand here is called 'SlotMislaid'"),
        ('{"type":"Marker","checkpoint":1}', "may stand here is called 'Marker'"),
        ('{"type":"SlotLost","slot":1}', "SlotLost with the fields"),
        ('{"type":"SlotLost","slot":1,"incarnation":1,"why":2}', "SlotLost with the fields"),
        ('{"type":"SlotLost","slot":"1","incarnation":1}', "'1' where a int"),
        ('{"type":"SlotLost","slot":true,"incarnation":1}', "True where a int"),
        ('{"type":"JobStopped","problem":null}', "None where a str"),
        ('"SlotRunning"', "'SlotRunning' where a dict"),
        ("null", "None where a dict"),
    ],
)
def test_a_happening_that_is_unknown_or_malformed_is_damage(what, complaint):
    line = f'{{"type":"Happened","at_us":1,"actor":"slot/0","epoch":1,"what":{what}}}\n'
    with pytest.raises(ObjectDamaged, match=f"line 2 of the journal is damaged: .*{complaint}"):
        list(read(['{"journal":5}\n', line]))


@given(cut=st.integers(0, len("".join(lines(JOURNAL)))))
@settings(max_examples=60, deadline=None)
def test_a_journal_cut_anywhere_gives_the_entries_before_the_cut(cut):
    text = "".join(lines(JOURNAL))[:cut]
    back = tuple(read(text.splitlines(keepends=True), PROTOCOL))
    assert back == JOURNAL[: len(back)]
    whole = text.count("\n") - 1  # without the header
    assert len(back) in (max(0, whole), whole + 1)


def test_a_last_line_that_only_misses_its_newline_counts():
    text = "".join(lines(JOURNAL)).rstrip("\n")
    assert tuple(read(text.splitlines(keepends=True), PROTOCOL)) == JOURNAL


@pytest.mark.parametrize(
    "damage",
    ['{"type":"Stamped"', "{}", "[]", '{"type":"Unheard"}', '{"type":"Happened","at_us":1}', ""],
)
def test_a_damaged_line_is_an_error_that_names_its_number(damage):
    whole = list(lines(JOURNAL[-3:]))
    for at in (1, 2, 3):
        broken = [*whole[:at], damage + "\n", *whole[at + 1 :]]
        with pytest.raises(ObjectDamaged, match=f"line {at + 1} of the journal"):
            list(read(broken))


def test_a_number_that_became_a_string_is_damage():
    whole = [line.replace('"at_us":7', '"at_us":"7"') for line in lines(JOURNAL)]
    with pytest.raises(ObjectDamaged, match="of the journal"):
        list(read(whole, PROTOCOL))


def test_an_unknown_version_is_refused():
    with pytest.raises(UsageError, match="version 6"):
        list(read(['{"journal":6}\n']))


@pytest.mark.parametrize("first", ["a,b,c\n", '{"type":"Built"}\n', "[1]\n"])
def test_a_file_of_another_kind_is_refused(first):
    with pytest.raises(UsageError, match="not a journal"):
        list(read([first, "more\n"]))


def test_nothing_at_all_is_an_empty_journal():
    assert list(read([])) == []


@given(text=st.text(), header=st.binary(max_size=20), seq=st.integers(1, 2**63), log=st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_text_and_any_header_come_back_equal(text, header, seq, log):
    journal = [
        Happened(1, "slot/0", 1, JobStopped(text)),
        Stamped(2, "a/0", 1, 1, AB, seq, Stamp(header, log), 1),
    ]
    assert list(read(lines(journal))) == journal
