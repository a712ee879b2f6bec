"""Judges recorded tables: in this process if they fit into memory, else on Spark; both judge alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.systems.recorded.batches import batches_of, named_events
from snapline.systems.recorded.tables import RecordedTables
from snapline.validate.causes import Cause
from snapline.validate.check import judge
from snapline.validate.judged import Judged
from snapline.validate.sentences import WitnessEvent, event_of, sentence

Engine: TypeAlias = Literal["process", "spark"]
ENGINES: Final[tuple[Engine, ...]] = ("process", "spark")

PROCESS_VALUES_MAX: Final = 20_000_000
"""Up to this many events and claims together are judged in process, which takes some 1.6 GB."""

Tell: TypeAlias = Callable[[str], None]
Events: TypeAlias = Mapping[int | str, WitnessEvent]


@dataclass(frozen=True, slots=True)
class WindowSpan:
    """How long windows are, when they are closed, and which of them are judged."""

    size_ms: Millis
    lateness_ms: Millis = 0  # a window is closed when the watermark is so far beyond its end
    until_ms: Millis | None = None  # only those that end then or before; None: all
    #: only those that are closed by what the input shows of the watermark at its end: its highest
    #: `watermark`, or the time of its latest event if it has none, which no watermark is ahead of
    ignore_open: bool = False

    def end(self, last_ms: Millis) -> Millis | None:
        """The end of the last window to be judged; `last_ms` is the watermark at the end of the input."""
        limits = [] if self.until_ms is None else [self.until_ms]
        if self.ignore_open:
            limits.append(last_ms - self.lateness_ms)
        return min(limits, default=None)


@dataclass(frozen=True, slots=True)
class RecordedReport:
    """The judgement on recorded inputs and outputs, with a sentence for each cause."""

    judged: Judged
    sentences: Mapping[Cause, str]  # one for each cause that was found
    engine: Engine


def engine_for(recorded: RecordedTables) -> Engine:
    """Which engine judges these tables, unless the user chooses one: it depends on their size."""
    return "process" if recorded.values <= PROCESS_VALUES_MAX else "spark"


def judge_recorded(
    recorded: RecordedTables, span: WindowSpan, engine: Engine, tell: Tell = lambda text: None
) -> RecordedReport:
    """Judge recorded tables. `tell` is called with the progress. Raises UsageError."""
    if span.size_ms <= 0:
        raise UsageError("--window is longer than nothing: the size of the windows, as in 10s")
    judged, events = (_in_process if engine == "process" else _on_spark)(recorded, span, tell)
    _check_related(judged)
    sentences = {
        cause: sentence(witness, span.size_ms, event=_event(events, witness.id))
        for cause, witness in sorted(
            judged.witnesses.items(), key=lambda pair: [*Cause].index(pair[0])
        )
    }
    return RecordedReport(judged, sentences, engine)


def _event(events: Events, id: int | str | None) -> WitnessEvent | None:
    return None if id is None else events.get(id)


def _check_related(judged: Judged) -> None:
    """Raise UsageError if no id of the output is in the input: then the two do not belong together."""
    if judged.inputs and judged.lost == judged.inputs and Cause.INVENTED in judged.causes:
        witness = judged.witnesses[Cause.INVENTED]
        shown = "" if witness.id is None else f" (such as {witness.id!r})"
        raise UsageError(
            f"none of the ids in the output{shown} is an id of the input: they do not belong together; "
            "name the input that this output was made of"
        )


def _clock(recorded: RecordedTables) -> str:
    """The column of the input that shows how far the watermark has come."""
    return "watermark" if "watermark" in recorded.inputs.types else "time"


def _in_process(recorded: RecordedTables, span: WindowSpan, tell: Tell) -> tuple[Judged, Events]:
    tell("reading")
    tables = batches_of(recorded)
    tell("judging")
    judged = judge(
        *(tables.inputs, tables.outputs, tables.late, span.size_ms),
        lateness_ms=span.lateness_ms,
        until_ms=span.end(int(tables.inputs[_clock(recorded)].max())),
    )
    ids = {witness.id for witness in judged.witnesses.values()}
    found = {id: event_of(tables.inputs, id) for id in ids if isinstance(id, int)}
    events = {id: event for id, event in found.items() if event is not None}
    return tables.named(judged), named_events(tables, events)


def _on_spark(recorded: RecordedTables, span: WindowSpan, tell: Tell) -> tuple[Judged, Events]:
    from snapline.spark.starting import Aside, stop_session
    from snapline.systems.recorded.frames import events_with, frames_of, latest, session_for, told
    from snapline.validate.on_spark.judge import judge_frames

    tell("starting Spark")
    spark = session_for(recorded)

    def work() -> tuple[Judged, Events]:
        inputs, outputs, late = frames_of(recorded, spark)
        tell("judging on Spark")
        last_ms = latest(inputs, _clock(recorded)) if span.ignore_open else 0
        judged = judge_frames(
            *(inputs, outputs, late, span.size_ms),
            lateness_ms=span.lateness_ms,
            until_ms=span.end(last_ms),
        )
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


def _as_event(row: Mapping[str, Any]) -> WitnessEvent:
    names = ("post", "partition", "offset")
    optional = {name: row[name] for name in names if row.get(name) is not None}
    return WitnessEvent(row["id"], row["time"], row["resource"], **optional)
