"""The judge of a system that still runs: a window behind the watermark is judged once, then forgotten.

Inputs, outputs, late events and watermarks may be given in any interleaving. A window is *closed* once the
watermark is `lateness + grace` beyond its end. Then its events and its outputs are judged, by the rules of
`causes` and by the same code as in the whole form, and leave memory. An output stays as long as an event
that it claims is open, and an event as long as an open output claims it; nothing else keeps anything.

*Memory*: the events of the open windows, those within `size + lateness + grace` of the watermark, at
`BYTES_PER_EVENT` each and the bytes of a string resource, plus `BYTES_PER_OUTPUT` for each output; a step
of judging takes some ten times as much for a moment. It does not grow with the length of the run; only a
system that puts out nothing any more costs one small entry for each window since its last output.

*What it can tell.* The same as the whole form, if what belongs together was given before the first of
its windows was closed: an event, the outputs that claim it, its rows in the late output. What comes later
waits as long as a window is kept open, and is then judged with what is there:

- An event of a closed window that is late is fine, however late. If it is lost, it is called missing (or
  truncated) for itself, for what is known of its window is gone.
- An output of a closed window that claims ids no longer known: if no event of that window was lost, all
  that it claims was counted already or never belonged there, and it is called a duplicate (the position of
  the first is gone). If one was lost, this may be it: undecided.
- An output of a closed window that is right, with events that came as late: whether another part of it came
  out before is forgotten, so whether it is split is undecided.
- An output of an open window that claims ids no longer known is called invented; it may be a misplaced one.
- A row of the late output with an id no longer known: if no event was ever lost, it is called invented (it
  may be late and windowed); if one was, this may be it: undecided.
- An id that is given twice in the input is noticed only while the first is known.

So a guarantee that it calls broken is broken, provided that inputs are given no later than outputs that
claim them are judged; a name may be less exact than that of the whole form.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from snapline.batch import Batch, Varlen, Words, concat
from snapline.ids import Millis
from snapline.validate.account import Account
from snapline.validate.causes import Cause
from snapline.validate.columns import Bools, Ints, as_inputs, as_late, as_outputs
from snapline.validate.facts import FINE, NUMBER, Facts, any_claim, facts, of_event
from snapline.validate.findings import findings
from snapline.validate.judged import Judged
from snapline.validate.lineage import NOBODY, LineageColumns, lineage
from snapline.validate.scope import JudgedRows, take, within

BYTES_PER_EVENT: Final = (
    5 * 8 + 2 + 8
)  # its columns id, time, resource, watermark, due; post, done; and its id in an output
BYTES_PER_OUTPUT: Final = (
    6 * 8 + 2 + 4 * 8
)  # its six numbers; done, after; and where its two lists begin and end

_EVER: Final = -(1 << 62)
_NEVER: Final = 1 << 62
_LOSSY_MAX: Final = 4_096


class Incremental:
    """Judges what it is given, window by window."""

    def __init__(self, size_ms: Millis, *, lateness_ms: Millis = 0, grace_ms: Millis = 0) -> None:
        self._size_ms: Final = size_ms
        self._lateness_ms: Final = lateness_ms
        self._hold_ms: Final = size_ms + lateness_ms + grace_ms
        self._closed = _EVER  # windows that begin at this time or before are closed
        self._newest = _EVER  # the latest window that an event or an output has
        self._last_output = _EVER  # the latest window that an output has
        self._events: Final = _Held(as_inputs(Batch.of(id=[], time=[], resource=[])))
        self._outputs: Final = _Held(as_outputs(None).with_columns(after=np.zeros(0, np.bool_)))
        self._late: Final = _Held(as_late(None))
        self._account: Final = Account()
        self._lossy: Final[set[Millis]] = (
            set()
        )  # closed windows of which events were lost, the first ones

    def add_inputs(self, table: Batch) -> None:
        """Add events. They must come before the outputs that claim them are judged."""
        table = as_inputs(table)
        self._hold(self._events, table, table["time"] - table["time"] % self._size_ms)

    def add_outputs(self, table: Batch | None) -> None:
        """Add outputs. Without positions they are numbered in the order in which they come."""
        table = as_outputs(table, self._outputs.given)
        self._last_output = int(table["window"].max(initial=self._last_output))
        after = table["window"] <= self._closed
        self._hold(self._outputs, table.with_columns(after=after), table["window"])

    def add_late(self, table: Batch | None) -> None:
        """Add rows of the late output. Without positions they are numbered in the order they come."""
        table = as_late(table, self._late.given)
        due = _NEVER if self._newest == _EVER else max(self._closed, self._newest) + self._hold_ms
        self._late.add(table, due)

    def _hold(self, held: "_Held", table: Batch, window: Ints) -> None:
        """Keep rows until their window is closed; if it is closed already, as long as windows stay open."""
        self._newest = int(window.max(initial=self._newest))
        due = np.where(window > self._closed, window, self._closed + self._hold_ms)
        held.add(table, due)

    def advance(self, watermark_ms: Millis) -> Judged | None:
        """Judge the windows that this watermark closes. Returns None if it closes none."""
        self._closed = max(self._closed, watermark_ms - self._hold_ms)
        if all(h.next_due > self._closed for h in (self._events, self._outputs, self._late)):
            return None
        return self._judge()

    def finish(self) -> Judged:
        """Judge all that is left, and return the judgement on everything."""
        self._closed = _NEVER
        self._judge()
        return self.so_far

    @property
    def so_far(self) -> Judged:
        """The judgement on all windows that are closed so far."""
        self._account.settle(self._last_output)
        return self._account.judged()

    @property
    def held_events(self) -> int:
        """The number of events in memory."""
        return self._events.rows

    @property
    def held_bytes(self) -> int:
        """The bytes of what is in memory."""
        return sum(held.nbytes for held in (self._events, self._outputs, self._late))

    @property
    def bound_bytes(self) -> int:
        """The most bytes that the held events and outputs can take, if resources are numbers."""
        events = self._events.rows + self._late.rows
        return events * BYTES_PER_EVENT + self._outputs.rows * BYTES_PER_OUTPUT

    def _judge(self) -> Judged:
        events, outputs, late = self._events.table, self._outputs.table, self._late.table
        tables = lineage(events, outputs, late, self._size_ms, lateness_ms=self._lateness_ms)
        claims, closed = tables.claims, self._closed
        open_event = events["due"] > closed
        waits = any_claim(tables, of_event(open_event, claims.event))
        open_output = (outputs["due"] > closed) | waits
        # A late row whose event was judged before is treated as if the event were unknown.
        judged_before = of_event(events["done"], tables.late.event)
        of_row = np.where(judged_before, NOBODY, tables.late.event)
        open_late = np.where(of_row == NOBODY, late["due"] > closed, of_event(open_event, of_row))
        step = self._enter(
            replace(tables, late=replace(tables.late, event=of_row)),
            facts(tables),
            JudgedRows(~open_event & ~events["done"], ~open_output & ~outputs["done"], ~open_late),
            outputs["after"],
        )
        wanted = np.zeros(len(events), np.bool_)  # events that an open output claims
        wanted[claims.event[open_output[claims.output] & (claims.event != NOBODY)]] = True
        beside = any_claim(tables, of_event(wanted, claims.event))  # outputs that claim such events
        self._events.keep(open_event | wanted, ~open_event, closed)
        self._outputs.keep(open_output | beside, ~open_output, closed)
        self._late.keep(open_late, ~open_late, closed)
        return step

    def _enter(
        self, tables: LineageColumns, known: Facts, scope: JudgedRows, after: Bools
    ) -> Judged:
        """Add the rows in scope to the account; `after` are outputs that came after their window closed."""
        occurs, events = known.occurs + known.late, scope.events
        lost = events & (occurs == 0)
        self._note_lost(np.unique(tables.events.window[lost]))
        step = Account(
            inputs=int(events.sum()),
            outputs=int(scope.outputs.sum()),
            late=int(scope.late.sum()),
            lost=int(lost.sum()),
            repeated=int((events & (occurs > 1)).sum()),
            reliable=int((events & known.reliable).sum()),
            counted=int((events & (known.rightly > 0)).sum()),
            late_events=int((events & (known.late > 0)).sum()),
        )
        tables, known = within(tables, known, scope)
        known, step.unsure_outputs = self._without_memory(tables, known, scope.outputs & after)
        if self._lossy:
            unknown = tables.late.event == NOBODY
            step.unsure_late = int(unknown.sum())
            tables = replace(tables, late=take(tables.late, tables.late.event, ~unknown))
        step.enter(findings(tables, known), tables, self._last_output)
        self._account.merge(step)
        self._account.settle(self._last_output)
        return step.judged()

    def _note_lost(self, windows: Ints) -> None:
        self._lossy.update(windows[: max(0, _LOSSY_MAX - len(self._lossy))].tolist())

    def _without_memory(
        self, tables: LineageColumns, known: Facts, after: Bools
    ) -> tuple[Facts, int]:
        """Judge outputs that came after their windows were closed; also returns how many are undecided."""
        claims = tables.claims
        unknown = any_claim(tables, claims.event == NOBODY)
        odd = after & unknown & (known.cause == NUMBER[Cause.INVENTED])
        lossy = len(self._lossy) >= _LOSSY_MAX or np.isin(tables.outputs.window, [*self._lossy])
        unsure = (odd & lossy) | (after & (known.cause == FINE))  # lost before, or a part
        cause = np.where(odd, np.where(lossy, FINE, NUMBER[Cause.DUPLICATE]), known.cause)
        shows = known.shows & (cause != FINE)[claims.output]
        first = np.where(odd[claims.output], NOBODY, known.first)
        split = known.split & ~np.isin(tables.events.group, tables.outputs.group[after])
        known = replace(known, cause=cause, shows=shows, first=first, split=split)
        return known, int(unsure.sum())


class _Held:
    """Rows in memory, with a column `due`: from which closed window on they are judged."""

    def __init__(self, empty: Batch) -> None:
        self._parts: list[Batch] = [_fresh(empty, _NEVER)]
        self.given = 0
        self.next_due = _NEVER

    def add(self, table: Batch, due: Ints | int) -> None:
        """Add rows."""
        if len(table):
            self._parts.append(_fresh(table, due))
            self.given += len(table)
            self.next_due = int(self._parts[-1]["due"].min(initial=self.next_due))

    @property
    def table(self) -> Batch:
        """All rows."""
        if len(self._parts) > 1:
            self._parts = [concat([part for part in self._parts if len(part)])]
        return self._parts[0]

    def keep(self, rows: Bools, done: Bools, closed: Millis) -> None:
        """Keep only these rows, and mark some of them as done."""
        table = self.table.with_columns(done=done).take(rows)
        self._parts = [table]
        self.next_due = int(table["due"].min(initial=_NEVER, where=table["due"] > closed))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(len(part) for part in self._parts)

    @property
    def nbytes(self) -> int:
        """Their size."""
        return sum(part.nbytes for part in self._parts)


def _fresh(table: Batch, due: Ints | int) -> Batch:
    """Rows as they are kept: strings as such, with columns `due` and `done`, and without a case."""
    columns = {name: column for name, column in table.columns.items() if name != "case"}
    if isinstance(words := columns.get("resource"), Words):
        columns["resource"] = Varlen.of("str", words.values).take(words.codes)
    columns["due"] = np.broadcast_to(np.asarray(due, np.int64), (len(table),)).copy()
    columns["done"] = np.zeros(len(table), np.bool_)
    return Batch(columns, len(table))
