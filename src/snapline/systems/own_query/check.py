"""`sl.check_stream`: does a user's own streaming query survive kills, and put out what it would as a batch?

The input is a DataFrame, written as files that appear one after the other. The query runs in a process of
its own, is killed for real, and is started again from its checkpoint, until all input is processed
(`adapter`, driven by the `Course` of all systems under test). What it put out is then compared with what
the same query gives for the same DataFrame as a batch (`judge`).
"""

import random
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from snapline import arguments
from snapline.arguments import checked, one_of, optional, refused, whole
from snapline.chaos.faults import At, During, Fault, KillDriver, describe, parse
from snapline.chaos.plan_file import read_plan
from snapline.chaos.schedule import when
from snapline.chaos.strikes import Strike
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.judge.history import history_of_system
from snapline.judge.verdict import Verdict
from snapline.spark.ready import check_session
from snapline.storage.files.places import make_top
from snapline.systems.harness.course import Course
from snapline.systems.harness.feeder import PIECE_MS
from snapline.systems.own_query.adapter import OwnQuery, Places, refusal, url
from snapline.systems.own_query.driver import Build, QueryPlan, Write
from snapline.systems.own_query.judge import Output, Rows, Struck, judge_stream, steady
from snapline.systems.own_query.progress import StreamReports, stream_reports
from snapline.systems.own_query.sending import inherited_settings, save_functions
from snapline.systems.own_query.staged import FileNumbers, stage
from snapline.systems.own_query.tables import (
    Mode,
    Read,
    batch_rows,
    built,
    read_rows,
    written_rows,
)
from snapline.validate.judged import Answer
from snapline.wording import plural

MODES = ("append", "complete", "update")
CORES_MAX = 4
"""The most cores of the query's process: a small input on many cores is only slower."""

BATCHES_MAX = 1_000
SEED_MAX = (1 << 63) - 1
DEFAULT = (KillDriver(During("round")), KillDriver(During("round")))
"""What is done to a query unless somebody says otherwise: it is killed in two micro-batches."""

UNSTEADY = (
    "build gives other rows each time for the same batch (a clock or dice in it?), so there is nothing to "
    "compare a stream with"
)
SHOWN = 5
"""How many problems a text shows."""


@dataclass(frozen=True, slots=True)
class StreamCheck:
    """A check that is over: true if it was proved that the query put out what it should."""

    verdict: Verdict
    faults: tuple[Strike, ...] = ()  # every fault of the plan, and whether it struck
    kills: int = 0  # how often the query was killed
    restarts: int = 0  # how often it was started again
    batches: int = 0  # micro-batches that were committed
    rows: int = 0  # that came out
    late: int = 0  # rows that Spark dropped behind the watermark
    events: tuple[Happened, ...] = ()  # what happened to the query

    @property
    def kept(self) -> Answer:
        """Whether the output is what the batch gives: yes, no, or unknown."""
        return self.verdict.kept

    def __bool__(self) -> bool:
        return self.kept == "yes"

    def __str__(self) -> str:
        done = (
            f"killed {plural(self.kills, 'time')}, "
            f"{plural(self.batches, 'micro-batch', 'micro-batches')}, {plural(self.rows, 'row')} of output"
        )
        first = self.verdict.problems[:SHOWN]
        return "\n".join(
            [
                f"exactly once: {self.kept} ({done})",
                self.verdict.because,
                *(f"  {each.kind} {each.record}: {each.because}" for each in first),
            ]
        )


def _function(value: Any, name: str) -> Callable[..., Any]:
    if not callable(value):
        raise refused(name, "a function", value)
    function: Callable[..., Any] = value
    return function


def _batch(value: Any, name: str) -> DataFrame:
    if type(value).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(f"{name} is a DataFrame of Spark Connect, and a classic one is needed")
    if not isinstance(value, DataFrame):
        raise refused(name, "a DataFrame", value)
    if value.isStreaming:
        raise UsageError(
            f"{name} is a stream: give the rows as a batch, and they become a stream of files"
        )
    check_session(value.sparkSession, name)
    return value


def _a_place(value: Any, name: str) -> Path:
    path = arguments.path(value, name)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{name}: {path} is there and not empty, and every check begins anew")
    return path


_RULES = {
    "build": _function,
    "df": _batch,
    "faults": optional(arguments.texts),
    "mode": one_of("mode", MODES),
    "key": arguments.texts,
    "write": optional(_function),
    "read": optional(_function),
    "batches": whole(1, BATCHES_MAX),
    "seed": whole(0, SEED_MAX),
    "directory": optional(_a_place),
}


def _together(given: Mapping[str, Any], written: Callable[[str], str]) -> None:
    own = given.get("write") is not None
    if own != (given.get("read") is not None):
        raise UsageError("write and read belong together: what write puts out, read reads")
    update = given.get("mode") == "update" and not own
    if update and not given.get("key"):
        raise UsageError(
            "mode='update' needs key: the columns that say which earlier row a row replaces"
        )
    if given.get("key") and not update:
        raise UsageError("key is for mode='update' without a sink of your own")


@checked(_RULES, _together)
def check_stream(
    build: Build,
    df: DataFrame,
    *,
    faults: str | Sequence[str] | None = None,
    mode: Mode = "append",
    key: str | Sequence[str] = (),
    write: Write | None = None,
    read: Read | None = None,
    batches: int = 8,
    seed: int = 1,
    directory: str | Path | None = None,
) -> StreamCheck:
    """Kill a streaming query of yours, restart it from its checkpoint, and compare it with a batch.

    `assert sl.check_stream(build, df)` holds if the query was killed and put out, exactly once, the rows
    that `build(df)` gives. Late rows, windows that are open at the end and a kill that never struck can
    make that impossible to say: the verdict is *unknown* then, and says why.

    Args:
        build: your query, from a DataFrame to a DataFrame, without source and sink. It is run on a batch
            and on a stream, and sent to another process, so it must not hold sessions or files.
        df: the input, a batch; its rows come in their order, so sort it by its event time.
        faults: `["kill driver at=3s", "kill driver on=round", "pause driver at=2s for=1s"]`. Without
            them the query is killed in two micro-batches; `[]`: nothing is done to it.
        mode: Spark's output mode: `"append"`, `"complete"` or `"update"`.
        key: for `"update"`: the columns that say which earlier row a row replaces.
        write: your own function for `foreachBatch`, `write(batch_df, batch_id)`, which is then tested, too.
        read: reads what `write` has put out: `read(spark)` returns a DataFrame with the columns of `build`.
        batches: into about so many micro-batches the input is split.
        seed: decides in which micro-batches kills `on=round` strike.
        directory: where everything is kept; without one it is a temporary folder that is deleted.

    Raises:
        UsageError: an argument is wrong, or the query cannot run: not as a batch, not as a stream, or not
            even when nothing is done to it.
    """
    plan = DEFAULT if faults is None else _named(faults)
    columns = built(build, df).columns  # what cannot be is refused before anything is written
    keys = (key,) if isinstance(key, str) else tuple(key)
    if lacking := [name for name in keys if name not in columns]:
        raise UsageError(f"key: build returns no column {lacking[0]!r}")
    with _home(directory) as home:
        places = Places(home)
        save_functions(build, write, places.functions)
        files = stage(df, places.staged, batches)
        stored = df.sparkSession.read.schema(df.schema).parquet(url(places.staged))
        query = built(build, stored)
        expected = batch_rows(query)
        # Clocks and dice are read once for each DataFrame, so it takes another one to see them differ.
        if not steady(expected, batch_rows(built(build, stored))):
            return StreamCheck(Verdict("unknown", UNSTEADY))
        system = OwnQuery(places, _plan(df, places, mode), files, _rounds(plan, seed, len(files)))
        ended = _carry_out(system, plan, len(files))
        if ended.problem is not None:
            return _result(ended, _failed(ended), places, ())
        if read is None:
            found = written_rows(df.sparkSession, places.output, query.schema, mode, keys)
        else:
            found = read_rows(df.sparkSession, read, query.columns)
        reports = stream_reports(places.progress, places.batches.committed)
        appended = mode == "append"
        output = Output(query.schema, expected, found, reports, appended)
        verdict = judge_stream(output, _struck(ended, reports))
        return _result(ended, verdict, places, found)


# The faults.


def _named(faults: str | Sequence[str]) -> tuple[Fault, ...]:
    several = (faults,) if isinstance(faults, str) else faults
    plan = parse("; ".join(map(read_plan, several)))
    for fault in plan:
        if why := refusal(fault):
            raise UsageError(f"a query cannot take '{fault}': {why}")
    return plan


def _rounds(faults: Sequence[Fault], seed: int, files: int) -> list[int]:
    """For each kill in a micro-batch: from which one on. In the first there is nothing to lose yet."""
    rng = random.Random(f"{seed}:rounds")
    waiting = [fault for fault in faults if isinstance(when(fault), During)]
    return sorted(rng.randint(min(1, files - 1), files - 1) for _ in waiting)


def _interval_ms(faults: Sequence[Fault], files: int) -> Millis:
    """How often a file appears: so that input goes on while faults with a time strike."""
    last_ms = max((at.ms for fault in faults if isinstance(at := when(fault), At)), default=0)
    return max(PIECE_MS, last_ms // max(1, files - 1) + 1)


# The run.


@dataclass(frozen=True, slots=True)
class _Ended:
    """A query that came to its end, or did not."""

    system: OwnQuery
    faults: tuple[Fault, ...]
    course: Course
    problem: str | None


def _carry_out(system: OwnQuery, faults: tuple[Fault, ...], files: int) -> _Ended:
    """Run the query to its end, and do the faults to it."""
    sources = {"files": FileNumbers(files, _interval_ms(faults, files))}
    course = Course(system.name, system, faults, sources, lambda happened: None)
    try:
        system.start()
        course.begin()
        return _Ended(system, faults, course, course.go())
    finally:
        system.stop()


def _failed(ended: _Ended) -> Verdict:
    """The verdict on a query that did not come to its end. UsageError if nothing was done to it."""
    if _kills(ended.course.events) == 0:
        raise UsageError(f"the query fails although nothing was done to it: {ended.problem}")
    gave_up = ended.system.problem is not None
    said = f"the query was killed and did not come to its end: {ended.problem}"
    return Verdict("no" if gave_up else "unknown", said)


def _struck(ended: _Ended, reports: StreamReports) -> Struck:
    course, plan = ended.course, describe(ended.faults)
    history = history_of_system(course.events, course.now_ms(), plan)
    first_s = reports.first_s
    known = (
        history.first_line_ms,
        None if first_s is None else round((first_s - course.origin_s) * 1000),
    )
    first_ms = min((ms for ms in known if ms is not None), default=None)
    return Struck(history.strikes, history.losses_ms, first_ms)


def _result(ended: _Ended, verdict: Verdict, places: Places, found: Rows) -> StreamCheck:
    figures, events = ended.system.figures(), ended.course.events
    history = history_of_system(events, ended.course.now_ms(), describe(ended.faults))
    return StreamCheck(
        verdict,
        history.strikes,
        _kills(events),
        figures["restarts"],
        figures["batches"],
        len(found),
        figures["dropped"],
        tuple(events),
    )


def _kills(events: Sequence[Happened]) -> int:
    return sum(isinstance(event.what, ProcessKilled) for event in events)


def _plan(df: DataFrame, places: Places, mode: Mode) -> QueryPlan:
    spark = df.sparkSession
    return QueryPlan(
        schema=df.schema.jsonValue(),
        functions=str(places.functions),
        mode=mode,
        cores=min(spark.sparkContext.defaultParallelism, CORES_MAX),
        settings=inherited_settings(spark),
        input=url(places.input),
        output=url(places.output),
        checkpoint=url(places.batches.checkpoint),
        reports=str(places.reports),
        hold_from=None,
    )


@contextmanager
def _home(directory: str | Path | None) -> Iterator[Path]:
    """The directory of a check; a temporary one is deleted in the end."""
    if directory is None:
        home = Path(tempfile.gettempdir()) / f"snapline-check-{secrets.token_hex(8)}"
    else:
        home = Path(directory).absolute()
        if home.is_dir():
            home.rmdir()  # it is empty, and made again with the rights that it should have
    make_top(home, private=True)
    try:
        yield home
    finally:
        if directory is None:
            shutil.rmtree(home, ignore_errors=True)
