"""Makes one sentence of a witness, for people, with the fault that was active.

The sentence names the input (id, partition and offset where they are known), the resource, the window as a
span of time, the output by its position, and what would be right. The fault is one that was active between
the arrival of the event and the closing of its window, or the writing of the output if that is later. Times
of a run count from its origin; event times that are dates are shown as dates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, assert_never

import numpy as np

from snapline.batch import Batch
from snapline.ids import Millis
from snapline.validate.causes import Cause
from snapline.validate.judged import Witness

_DATES_MS: Final = range(100_000_000_000, 250_000_000_000_000)
"""Event times in this range (1973 to 9892) are dates; others count from the origin of a run."""


@dataclass(frozen=True, slots=True)
class WitnessEvent:
    """The input behind a witness, as far as it is known."""

    id: int | str
    time: Millis
    resource: int | str
    post: bool = False
    partition: int | None = None
    offset: int | None = None
    arrival: Millis | None = None  # since the origin of the run


class TimedFault(NamedTuple):
    """A fault with the times of its begin and end. Without an end it was a moment, such as a kill."""

    text: str
    start_ms: Millis
    end_ms: Millis | None = None

    @property
    def over_ms(self) -> Millis:
        """When it was over."""
        return self.start_ms if self.end_ms is None else self.end_ms


def event_of(inputs: Batch, id: int | str | None) -> WitnessEvent | None:
    """The event with this id, if there is one."""
    rows = np.flatnonzero(inputs["id"] == id) if isinstance(id, int) else np.zeros(0, np.int64)
    if not len(rows):
        return None
    (values,) = inputs.take(rows[:1]).rows()
    known = dict(zip(inputs.columns, values, strict=True))
    names = ("post", "partition", "offset", "arrival")
    optional = {name: known[name] for name in names if name in known}
    return WitnessEvent(known["id"], known["time"], known["resource"], **optional)


def sentence(
    witness: Witness,
    size_ms: Millis,
    *,
    event: WitnessEvent | None = None,
    label: Callable[[int], str] | None = None,
    position: Callable[[int], str] = str,
    fault: str | None = None,
) -> str:
    """The sentence of a witness. `label` turns an id into text, `position` a position of the output.

    `fault` is what `active_fault` returns.
    """
    told = _told(witness, _Words(witness, size_ms, event, label, position), size_ms)
    return f"{told}; {fault}." if fault else f"{told}."


@dataclass(frozen=True, slots=True)
class _Words:
    """The parts of a sentence about one witness."""

    witness: Witness
    size_ms: Millis
    event: WitnessEvent | None
    label: Callable[[int], str] | None
    position: Callable[[int], str]

    @property
    def at(self) -> str:
        """Where the output stands."""
        return "" if self.witness.position is None else self.position(self.witness.position)

    @property
    def beside(self) -> str:
        """Where the other output stands, if there are two."""
        return "" if self.witness.other is None else self.position(self.witness.other)

    @property
    def who(self) -> str:
        """The input: `GET 0:17 (id 17)`, or only `event 17`."""
        id, event = self.witness.id, self.event
        if id is None:
            return "no event"
        if self.label is not None and isinstance(id, int):
            return f"{self.label(id)} (id {id})"
        if event is None:
            return f"event {id!r}"
        kind = "POST" if event.post else "GET"
        if event.offset is None:
            return f"{kind} event {id!r}"
        partition = "" if event.partition is None else f"{event.partition}:"
        return f"{kind} {partition}{event.offset} (id {id!r})"

    @property
    def output(self) -> str:
        """The output that is wrong, and what it says it is."""
        return f"the output at position {self.at} for {self.place}"

    @property
    def place(self) -> str:
        """The resource and the window of the witness."""
        return _place(self.witness.resource, self.witness.window, self.size_ms)

    @property
    def belongs(self) -> str:
        """What would be right for an event that is counted in the wrong place."""
        event, window = self.event, self.witness.other
        if event is None and window == self.witness.window:
            return ", which belongs to another resource, or to the other kind"
        if event is None:
            span = _window(window, self.size_ms)
            return f", which belongs to another resource, or to the window {span}"
        if (event.resource, window) != (self.witness.resource, self.witness.window):
            return f", which belongs to {_place(event.resource, window, self.size_ms)}"
        kind, other = ("POST", "GET") if event.post else ("GET", "POST")
        return f" among the {other}s, but it is a {kind}"


def _told(witness: Witness, words: _Words, size_ms: Millis) -> str:
    at, beside, other = words.at, words.beside, witness.other
    match witness.cause:
        case Cause.INVENTED if witness.window is None:
            text = f"the late output at position {at} names {words.who}, which is no input"
        case Cause.INVENTED if witness.id is None:
            text = f"{words.output} names no input at all"
        case Cause.INVENTED:
            text = f"{words.output} counts {words.who}, which is no input"
        case Cause.WRONG_WINDOW:
            text = f"{words.output} counts {words.who}, whose window is {_window(other, size_ms)}"
        case Cause.WRONG_PAIR:
            text = f"{words.output} is joined with {words.who}{words.belongs}"
        case Cause.MISPLACED:
            text = f"{words.output} counts {words.who}{words.belongs}"
        case Cause.TWICE_INSIDE:
            text = f"{words.output} counts {words.who} more than once: the state took it in twice"
        case Cause.WRONG_VALUE:
            text = f"{words.output} has a count that is not the number of its ids, {words.who} among them"
        case Cause.DUPLICATE if other is None:
            text = f"{words.output} counts {words.who}, although its window was complete already"
        case Cause.DUPLICATE:
            text = (
                f"{words.output} counts {words.who}, which is counted at position {beside} already"
            )
        case Cause.SPLIT:
            text = f"{words.output} is without {words.who}, which is in another one at position {beside}"
            text += ": no output has all"
        case Cause.LATE_AND_WINDOWED:
            text = f"{words.who} is in the late output at position {at}, and was counted for {words.place}"
            text += f" at position {beside}"
        case Cause.LATE_TWICE:
            text = f"{words.who} of {words.place} is late twice, at positions {at} and {beside}"
        case Cause.NOT_LATE:
            text = f"{words.who} of {words.place} is in the late output at position {at}"
            text += ", but it was in time"
            if other is not None:
                text += f": when it came, no watermark can have been beyond {_time(other)}"
        case Cause.TRUNCATED:
            text = f"{words.who} is lost: {words.place} never came out, and no later window did"
        case Cause.MISSING:
            text = f"{words.who} is lost: {words.place} never came out, although the output goes on"
        case Cause.INCOMPLETE:
            text = f"{words.who} is lost: the output at position {beside} for {words.place} is without it"
        case never:
            assert_never(never)
    return text[0].upper() + text[1:]


def _place(resource: int | str | None, window: Millis | None, size_ms: Millis) -> str:
    name = repr(resource) if isinstance(resource, str) else resource
    return f"resource {name}, window {_window(window, size_ms)}"


def _window(window: Millis | None, size_ms: Millis) -> str:
    """A window as a span: `10 s to 20 s`, or with dates."""
    if window is None:
        return "unknown"
    if window not in _DATES_MS:
        return f"{seconds(window)} to {seconds(window + size_ms)}"
    precision = "milliseconds" if window % 1000 or size_ms % 1000 else "seconds"
    first, last = _date(window, precision), _date(window + size_ms, precision)
    day = len("2026-01-31 ")
    return f"{first} to {last[day:] if last[:day] == first[:day] else last} UTC"


def _time(ms: Millis) -> str:
    """A time: `1.5 s`, or a date."""
    return f"{_date(ms, 'milliseconds')} UTC" if ms in _DATES_MS else seconds(ms)


def _date(ms: Millis, precision: str) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None).isoformat(" ", precision)


def seconds(ms: Millis) -> str:
    """A time in seconds, exactly: `8 s`, `8.25 s`."""
    sign, ms = ("-", -ms) if ms < 0 else ("", ms)
    return f"{sign}{ms // 1000}.{ms % 1000:03d}".rstrip("0").rstrip(".") + " s"


def life_of(
    witness: Witness,
    size_ms: Millis,
    *,
    lateness_ms: Millis = 0,
    event: WitnessEvent | None = None,
    written_ms: Millis | None = None,
) -> tuple[Millis, Millis]:
    """The time, since the origin of the run, in which a fault may have caused what a witness shows.

    `written_ms` is when the output, or the row of the late output, was written.
    """
    start = event.time if event is not None else witness.window or 0
    end = start - start % size_ms + size_ms + lateness_ms
    if event is not None and event.arrival is not None:
        start, end = event.arrival, event.arrival + max(0, end - start)
    return start, end if written_ms is None else max(end, written_ms)


def active_fault(faults: Sequence[TimedFault], from_ms: Millis, to_ms: Millis) -> str:
    """The fault that was active in this time, as the end of a sentence.

    Where none was, it is the last one before or else the first one after: a system that lags behind its
    input may lose an event to a fault that comes after the time in which its output was due.
    """
    struck = sorted(faults, key=lambda fault: (fault.start_ms, fault.over_ms))
    active = [fault for fault in struck if fault.start_ms <= to_ms and fault.over_ms >= from_ms]
    if active:
        more = f" (and {len(active) - 1} more)" if len(active) > 1 else ""
        return f"active: {active[0].text}{more}"
    before = [fault for fault in struck if fault.over_ms < from_ms]
    if before:
        last = max(before, key=lambda fault: fault.over_ms)
        ago = seconds(from_ms - last.over_ms)
        return f"no fault was active; the last was {last.text}, over {ago} before"
    if struck:
        wait = seconds(struck[0].start_ms - to_ms)
        return f"no fault had happened yet; the first was {struck[0].text}, {wait} later"
    return "no fault was injected"
