"""The judge of what was recorded: in this process if it fits well, else on Spark; both say the same."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.systems.recorded import Recorded, batch_of
from snapline.validate.causes import Cause
from snapline.validate.check import judge
from snapline.validate.judged import Judged
from snapline.validate.sentences import Event, event_of, sentence

Engine: TypeAlias = Literal["process", "spark"]
ENGINES: Final[tuple[Engine, ...]] = ("process", "spark")

PROCESS_VALUES_MAX: Final = 20_000_000
"""Up to so many events and claims together are judged in process: some 1.6 GB."""

Tell: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RecordedReport:
    """What there is to say about inputs and outputs that were recorded."""

    judged: Judged
    sentences: Mapping[Cause, str]  # one for each cause that was found
    engine: Engine


def engine_for(recorded: Recorded) -> Engine:
    """Where so much is judged, if nobody says."""
    return "process" if recorded.values <= PROCESS_VALUES_MAX else "spark"


def judge_recorded(
    recorded: Recorded, size_ms: Millis, engine: Engine, tell: Tell = lambda text: None
) -> RecordedReport:
    """Judge what was recorded. `tell` hears how far it is. Raises UsageError."""
    if size_ms <= 0:
        raise UsageError("--window is longer than nothing: the size of the windows, as in 10s")
    judged, events = (_in_process if engine == "process" else _on_spark)(recorded, size_ms, tell)
    _check_related(judged)
    sentences = {
        cause: sentence(witness, size_ms, event=_event(events, witness.id))
        for cause, witness in sorted(
            judged.witnesses.items(), key=lambda pair: [*Cause].index(pair[0])
        )
    }
    return RecordedReport(judged, sentences, engine)


def _event(events: Mapping[int, Event], id: int | None) -> Event | None:
    return None if id is None else events.get(id)


def _check_related(judged: Judged) -> None:
    """If no id is known at all, somebody has mixed up directories: that is no verdict on a system."""
    if judged.lost == judged.inputs and Cause.INVENTED in judged.causes:
        witness = judged.witnesses[Cause.INVENTED]
        shown = "" if witness.id is None else f" (such as {witness.id})"
        raise UsageError(
            f"none of the ids in the output{shown} is an id of the input: they do not belong together; "
            "name the input that this output was made of"
        )


def _in_process(recorded: Recorded, size_ms: Millis, tell: Tell) -> tuple[Judged, dict[int, Event]]:
    tell("reading")
    inputs, outputs = batch_of(recorded.inputs), batch_of(recorded.outputs)
    late = batch_of(recorded.late) if recorded.late else None
    tell("judging")
    judged = judge(inputs, outputs, late, size_ms)
    ids = {witness.id for witness in judged.witnesses.values()}
    found = {id: event_of(inputs, id) for id in ids if id is not None}
    return judged, {id: event for id, event in found.items() if event is not None}


def _on_spark(recorded: Recorded, size_ms: Millis, tell: Tell) -> tuple[Judged, dict[int, Event]]:
    from snapline.runtime.starting import Aside, stop_session
    from snapline.systems.recorded_frames import events_with, frames_of, session_for, told
    from snapline.validate.on_spark import judge_frames

    tell("starting Spark")
    spark = session_for(recorded)

    def work() -> tuple[Judged, dict[int, Event]]:
        inputs, outputs, late = frames_of(recorded, spark)
        tell("judging on Spark")
        judged = judge_frames(inputs, outputs, late, size_ms)
        ids = [w.id for w in judged.witnesses.values() if w.id is not None]
        rows = events_with(inputs, ids)
        return judged, {row["id"]: _as_event(row) for row in rows}

    try:
        return Aside(work).result()
    except UsageError:
        raise
    except Exception as error:
        if damage := told(error, recorded):
            raise damage from error
        raise
    finally:
        stop_session(spark)


def _as_event(row: Mapping[str, Any]) -> Event:
    names = ("post", "partition", "offset")
    optional = {name: row[name] for name in names if row.get(name) is not None}
    return Event(row["id"], row["time"], row["resource"], **optional)
