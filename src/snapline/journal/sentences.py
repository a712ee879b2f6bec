"""Everything that can happen, in plain words: one sentence for each kind of happening.

Every view of a run takes its words from here: the live view, the story of a simulated run, the steps of a
counterexample, the labels of a diagram. Which happenings a view shows, and in which colour, it decides
itself.
"""

from collections.abc import Mapping
from typing import assert_never

from snapline.ids import CheckpointNo, Millis, TaskId, checkpoint_label
from snapline.journal import fault_happenings as faults
from snapline.journal import happenings as h
from snapline.journal import loss_happenings as losses
from snapline.journal.entry import COORDINATOR, STORE, Happened
from snapline.wording import plural


def sentence(happened: Happened) -> str:
    """Say in one sentence what happened, without its time."""
    what, who = happened.what, _name(happened.actor)
    if isinstance(what, faults.FaultHappening):
        return _of_fault(what, who)
    if isinstance(what, h.ProcessHappening):
        return _of_process(what, who)
    if isinstance(what, h.JobHappening):
        return _of_job(what, who, happened)
    if isinstance(what, h.MessageHappening):
        return _of_message(what, who)
    if isinstance(what, losses.LossHappening):
        return _of_loss(what)
    return _of_measurement(what, who)


def _name(actor: str) -> str:
    return f"the {actor}" if actor in (COORDINATOR, STORE) else actor


def _of_fault(what: faults.FaultHappening, who: str) -> str:
    """Say what a fault did, and behind it the statement that asked for it."""
    match what:
        case faults.ProcessKilled(fault, _, pids):
            return f"{who} is killed{_asked(fault, pids)}"
        case faults.CoordinatorKilled(fault):
            return f"{who} is killed{_asked(fault)}"
        case faults.CoordinatorResumed():
            return f"{who} resumes the run from its durable decisions"
        case faults.ProcessPaused(fault, _, pids):
            return f"{who} stops responding{_asked(fault, pids)}"
        case faults.ProcessContinued():
            return f"{who} responds again"
        case faults.FaultMissed(fault):
            return f"{_statement(fault)} finds nobody: {who} is not back yet"
        case faults.ConnectionCut(fault, others):
            named = ", ".join(_name(COORDINATOR) if s is None else f"slot/{s}" for s in others)
            return f"{who} is cut off from {named}{_asked(fault)}"
        case faults.Slowed(fault, delay_ms):
            return f"{who} is slower by {_time(delay_ms)}{_asked(fault)}"
        case faults.FaultEnded(fault):
            return f"{_statement(fault)} is over"
        case faults.StoreAway(fault, for_ms):
            return f"{who} is away for {_time(for_ms)}{_asked(fault)}"
        case faults.StoreBack():
            return f"{who} is back"
        case faults.StoreUnreliable(fault, percent):
            return f"{who} fails {percent} % of all calls{_asked(fault)}"
        case faults.SnapshotDamaged(fault, checkpoint):
            stored = f"the stored checkpoint {checkpoint_label(checkpoint)} of {who}"
            return f"{stored} is damaged{_asked(fault)}"
        case faults.RecordSpoiled(fault, record, lost):
            return f"{record} in {who} is {'gone' if lost else 'damaged'}{_asked(fault)}"
        case faults.LaunchTroubled(fault):
            return f"starting {who} goes wrong from now on{_asked(fault)}"
        case faults.ConnectionsDisturbed(fault, connections):
            return f"{plural(connections, 'connection')} of {who} disturbed{_asked(fault)}"
        case _:
            assert_never(what)


def _of_process(what: h.ProcessHappening, who: str) -> str:
    match what:
        case h.SlotLaunched(incarnation):
            return f"a process is started for {who} (life {incarnation})"
        case h.LaunchFailed():
            return f"the process that was started for {who} dies"
        case h.RegisteredLate():
            return f"a process for {who} registers that had been given up"
        case h.SentAway():
            return f"a process for {who} registers too late, and is sent away"
        case h.ProcessNotStarted(because):
            return f"{because}; another is started"
        case h.OperatorRaised(kind, operator):
            place = f"operator '{operator}'" if operator else who
            return f"{place} has raised {kind}"
        case h.SlotCutOff():
            return f"{who} is given up: it has lost its connection with another slot"
        case h.SlotLost(slot):
            return f"{who} gives up slot/{slot} as lost"
        case h.SlotLeaving(slot):
            return f"slot/{slot} is to leave: the executor on which it runs is being decommissioned"
        case h.SlotLeft(slot):
            return f"{who} lets slot/{slot} go: the line holds all that it did"
        case h.SlotRestored():
            return f"{who} is restored"
        case h.SlotRunning():
            return f"{who} runs again; the others never stopped"
        case _:
            assert_never(what)


def _of_job(what: h.JobHappening, who: str, happened: Happened) -> str:
    match what:
        case h.JobRunning() if happened.actor == COORDINATOR:
            return f"all slots run (epoch {happened.epoch})"
        case h.JobRunning():
            return f"{who} runs, and takes input"
        case h.SystemDown():
            return f"{who} is down, and will be started again"
        case h.LineFound(stored, skipped, back_s, back_records):
            used = f"line found: {stored - skipped} of {plural(stored, 'checkpoint')}, {skipped} skipped"
            records = "" if back_records is None else f" and about {plural(back_records, 'record')}"
            return f"{used}; back by {back_s:.1f} s{records}"
        case h.LineDecided(number, _, line):
            return f"{who} decides the line {_line(line)} (decision {number})"
        case h.OutputPublished(number, rows):
            count = sum(stop - start for start, stop in rows.values())
            return f"{who} publishes {plural(count, 'row')} (manifest {number})"
        case h.GarbageCollected(snapshots):
            return f"{who} deletes {plural(snapshots, 'snapshot')} that no line needs"
        case h.StoreAwaited(because):
            return f"the store fails, the job waits: {because}"
        case h.JobRecovered(recovery_s):
            return f"recovered in {recovery_s:.1f} s"
        case h.InputEnded(records):
            return f"all input is given to {who}: {plural(records, 'record')}"
        case h.JobFinished():
            return "all input is processed and all output published"
        case h.JobStopped(problem):
            return f"{who} stops: {problem}"
        case h.JobInterrupted():
            return "the run is interrupted"
        case h.JobStopping():
            return "the run stops: it takes in no more, and waits for a last line"
        case h.JobSuspended(line):
            last = "" if line is None else f" with a last line (decision {line})"
            return f"the run is stopped{last}"
        case h.CoordinatorDeposed():
            return f"{who} finds that another one took over"
        case _:
            assert_never(what)


def _of_message(what: h.MessageHappening, who: str) -> str:
    match what:
        case h.MessageReplayed(message):
            return f"message {message.seq} of {message.channel} is replayed"
        case h.ReportFenced(slot, incarnation, report):
            return f"{who} turns away {report} of a former slot/{slot} (life {incarnation})"
        case h.FrameFenced(source, channel):
            return f"{who} turns away a message of a former slot/{source} on {channel}"
        case h.MessagesOvertaken(channel, messages):
            return f"a marker overtakes {plural(messages, 'message')} on {channel}"
        case h.MessagesDiscarded(channel, messages, records):
            lost = f"{plural(messages, 'message')} with {plural(records, 'record')}"
            return f"{who} has discarded {lost} on {channel} while the receiver was away"
        case h.InputSkipped(partition, start, stop):
            lost = f"records {start} to {stop - 1} of partition {partition} may be lost"
            return f"{who} goes on with record {stop}, which is due now: {lost}"
        case _:
            assert_never(what)


def _of_loss(what: losses.LossHappening) -> str:
    match what:
        case losses.TaskLoss(task, _, from_ms, to_ms):
            return f"{task} may have lost what it took in from {from_ms:,} to {to_ms:,} ms"
        case losses.StaleDropped(task, windows):
            return f"{task} drops {plural(windows, 'window')} that ended while it was away"
        case losses.RowsMissed(channel, rows, estimated):
            if estimated:
                return f"nobody knows how many rows did not come on {channel}: that is estimated"
            return f"{plural(rows, 'row')} did not come on {channel}"
        case losses.StaleRowsDropped(task, rows):
            return f"{task} drops {plural(rows, 'row')} that others would have driven out meanwhile"
        case losses.GroupLost(task, part, rows):
            lost = f"{plural(rows, 'row')} of '{part}'"
            return f"{task} goes on without {lost}: the group that has them cannot be read"
        case _:
            assert_never(what)


def _of_measurement(what: h.Measurement, who: str) -> str:
    match what:
        case h.CheckpointTimed(task, checkpoint, moments):
            took = _time((moments.durable_us - moments.begun_us) // 1000)
            return f"checkpoint {checkpoint_label(checkpoint)} of {task} is durable after {took}"
        case h.SecondMeasured(at_s, _, read, written):
            return f"second {at_s}: {plural(read, 'record')} read, {written:,} written"
        case h.SystemProgressed(figures):
            shown = (f"{name.replace('_', ' ')} {value:,}" for name, value in figures.items())
            return f"{who}: {', '.join(shown)}"
        case _:
            assert_never(what)


def _asked(fault: faults.Statement | None, pids: tuple[int, ...] = ()) -> str:
    """Say in parentheses which statement asked for it, and which processes it struck."""
    parts = [fault] if fault else []
    if pids:
        parts.append(f"process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))}")
    return f" ({'; '.join(parts)})" if parts else ""


def _statement(fault: faults.Statement | None) -> str:
    return "a fault" if fault is None else f"'{fault}'"


def _time(duration_ms: Millis) -> str:
    return f"{duration_ms / 1000:g} s" if duration_ms >= 1000 else f"{duration_ms} ms"


def _line(line: Mapping[TaskId, CheckpointNo]) -> str:
    return ", ".join(f"{task} {checkpoint_label(number)}" for task, number in line.items())
