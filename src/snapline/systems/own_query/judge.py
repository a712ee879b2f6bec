"""The verdict on a user's query: is what it put out what it gives for the same input as a batch?

There are no ids: rows are compared as multisets. A difference is a *no* only if nothing but a loss, a
repetition or a wrong value can explain it. Where late rows, rows that are held back, or the order inside
arrays could explain it as well, the answer is *unknown*, with what to do about it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from snapline.chaos.strikes import Strike, vacuous
from snapline.ids import Millis
from snapline.judge.verdict import UNKNOWN, Answers, Verdict, rows_as
from snapline.systems.own_query.progress import StreamReports
from snapline.systems.own_query.rows import Differences, Plain, compare, plain_rows
from snapline.wording import are, plural
from snapline.workload.common.base import Problem
from snapline.workload.oracles.verdict import LIMIT

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Output:
    """What a batch gives, what came out of the stream, and what Spark said of the stream."""

    schema: StructType
    expected: Rows
    found: Rows
    reports: StreamReports
    appended: bool  # rows come out once, when they are final: some may be held back at the end


@dataclass(frozen=True, slots=True)
class Struck:
    """What was done to the query."""

    strikes: tuple[Strike, ...]
    losses_ms: tuple[Millis, ...]
    first_line_ms: Millis | None  # when the first micro-batch was committed, or caught by a kill


def judge_stream(output: Output, struck: Struck) -> Verdict:
    """The verdict on a query that came to its end."""
    verdict = _compared(output)
    doubt = vacuous(
        struck.strikes,
        drawn=False,
        losses_ms=struck.losses_ms,
        first_line_ms=struck.first_line_ms,
        rows=len(output.found),
    )
    return verdict if doubt is None else verdict.doubted(doubt)


def steady(first: Rows, second: Rows) -> bool:
    """Whether two runs of the same batch gave the same rows."""
    return not compare(plain_rows(first), plain_rows(second))


def _compared(output: Output) -> Verdict:
    found = plain_rows(output.found)
    differ = compare(plain_rows(output.expected), found)
    held = _still_open(output, differ.missing) if output.appended else Counter()
    differ = Differences(differ.missing - held, differ.excess)
    if not differ:
        said = rows_as(len(output.found), "the same query gives as a batch")
        if waiting := held.total():
            said += f"; {plural(waiting, 'row')} of windows still open at the end {are(waiting)} not judged"
        return Verdict("yes", said, guarantees=dict.fromkeys(UNKNOWN, "yes"))
    problems = _problems(differ, found, output.schema.names)
    said = f"{problems[0].kind} {problems[0].record}: {problems[0].because}"
    if doubt := _doubt(output, differ):
        return Verdict("unknown", f"{doubt}; what differs first: {said}", problems)
    return Verdict("no", said, problems, _answers(output, differ))


def _answers(output: Output, differ: Differences) -> Answers:
    lacking = "unknown" if output.appended and output.reports.held else "no"
    return {
        "at-most-once": "no" if differ.excess else "yes",
        "at-least-once": lacking if differ.missing else "yes",
        "exactly-once": "no",
    }


def _doubt(output: Output, differ: Differences) -> str | None:
    """What else than a loss or a repetition may explain the differences, with what to do about it."""
    reports = output.reports
    if reports.dropped:
        return (
            f"Spark dropped {plural(reports.dropped, 'row')} as late, which a batch does not do: sort df "
            "by its event time, or let the watermark stand back further"
        )
    if reports.unreported:
        return (
            f"Spark did not report on {plural(reports.unreported, 'micro-batch', 'micro-batches')} before "
            "it was killed, so nobody knows whether it dropped late rows there: kill it on=round instead"
        )
    if not compare(
        plain_rows(output.expected, ordered=False), plain_rows(output.found, ordered=False)
    ):
        return "only the order inside of arrays differs, which Spark does not promise: sort them in build"
    if output.appended and reports.held and not differ.excess:
        return (
            f"rows are missing, but {plural(reports.held, 'row')} of state {are(reports.held)} left at the "
            "end, from which Spark may put them out later: keep the column window in the output, or end df "
            "with rows so much later that all windows before them close"
        )
    return None


def _problems(
    differ: Differences, found: "Counter[Plain]", names: Sequence[str]
) -> tuple[Problem, ...]:
    problems = []
    for row, times in differ.excess.items():
        copies = found[row]
        if copies > times:
            because = (
                f"it came out {copies} times, and the batch has it {plural(copies - times, 'time')}"
            )
            problems.append(Problem("duplicate", _shown(row, names), because))
        else:
            because = f"it came out {plural(times, 'time')}, and the batch does not have it"
            problems.append(Problem("invented", _shown(row, names), because))
    for row in differ.missing:
        because = "the batch has it, and it did not come out"
        problems.append(Problem("missing", _shown(row, names), because))
    return tuple(problems[:LIMIT])


def _shown(row: Plain, names: Sequence[str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(names, row, strict=True))


def _still_open(output: Output, missing: "Counter[Plain]") -> "Counter[Plain]":
    """Those of the missing rows that belong to windows which the watermark has not passed."""
    ends = {number: end for number, end in enumerate(_window_ends(output)) if end is not None}
    return Counter(
        {
            row: times
            for row, times in missing.items()
            if any(row[number] is not None and row[number][1] > end for number, end in ends.items())
        }
    )


def _window_ends(output: Output) -> list[datetime | None]:
    """For each column that is a window: the watermark, as Python shows times of its type."""
    watermark = output.reports.watermark
    found: list[datetime | None] = []
    for field in output.schema.fields:
        kind = field.dataType
        window = isinstance(kind, StructType) and kind.names == ["start", "end"]
        end = kind.fields[1].dataType if isinstance(kind, StructType) and window else None
        if watermark is not None and isinstance(end, TimestampNTZType):
            found.append(watermark.astimezone(UTC).replace(tzinfo=None))
        elif watermark is not None and isinstance(end, TimestampType):
            found.append(watermark.astimezone().replace(tzinfo=None))
        else:
            found.append(None)
    return found
