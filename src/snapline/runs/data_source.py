"""What a run left, as Spark itself reads it: `spark.read.format("snapline").load(RUN)`, also as a stream.

Spark finds the class by itself (`pyspark_snapline`), and makes it in a process beside the driver, which has
no session. There the reading is planned: names of files, and no rows. Each piece becomes a Spark task.

A stream reads what was published, manifest by manifest. Its offset is `{"manifest": n}`: the first n have
been read. A manifest never changes, nor do the rows that it names, so what lies between two offsets is the
same whenever Spark asks again: a sink that Spark calls exactly once stays exactly once behind it.

A run may keep its output for a while only. Then a new stream begins with what is left, and one that is
behind that fails, unless `failOnDataLoss` is false: then it goes on with what is left.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from snapline.arguments import nearest, path
from snapline.errors import RowsDeleted, SnaplineError, UsageError
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RUNS, RunDirectory
from snapline.rundir.output_rows import public_view, sink_named
from snapline.rundir.program import load_flow
from snapline.rundir.spec import OWN, Spec, spec_of
from snapline.runs import readings
from snapline.runs.readings import KeptState, Reading
from snapline.runs.tables import checkpoint_reading
from snapline.storage.api import OutputPiece, OutputReader

FORMAT = "snapline"
MANIFEST = "manifest"
"""The one name in an offset."""

WHAT = ("output", "uncommitted", "log", "checkpoints", "journal", "state", "seconds")
_STATE_ONLY = ("flow", "operator", "part")
_OPTIONS: Mapping[str, Collection[str]] = {
    "path": WHAT,
    "what": WHAT,
    "sink": ("output", "uncommitted"),
    "failondataloss": ("output",),
    **dict.fromkeys(_STATE_ONLY, ("state",)),
}
"""Each option, and what it can be said for."""


class RunSource(DataSource):
    """The format `snapline`. Options: what, sink, failOnDataLoss; for state flow, operator and part."""

    @classmethod
    def name(cls) -> str:
        """How Spark calls the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns, where the user has not said them. Raises UsageError if nobody knows."""
        with _in_one_sentence():
            request = _request(self.options)
            return _known_schema(request, _reading(request))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan to read what is there now."""
        with _in_one_sentence():
            return PieceReader(_reading(_request(self.options)), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Plan to read what was published, and what will be.

        An error raised here would be lost: Spark stops a reader that it does not have, and fails in that.
        """
        try:
            return OutputStreamReader(_stream_request(self.options), schema)
        except SnaplineError as error:
            return RefusedStreamReader(error)


@contextmanager
def _in_one_sentence() -> Iterator[None]:
    """Let Spark show of our errors what they say, and not where in our code they come from.

    Spark asks the environment when it writes the error down; then this process, which is one of its
    workers, ends.
    """
    try:
        yield
    except SnaplineError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


# What is asked for.


@dataclass(frozen=True, slots=True)
class _Request:
    """What the options ask for; all of them are checked."""

    directory: RunDirectory
    spec: Spec
    options: Mapping[str, str]
    what: str

    @property
    def sink(self) -> str:
        """The sink that is meant."""
        return sink_named(self.directory, self.options.get("sink"), '.option("sink", NAME) with')

    @property
    def lenient(self) -> bool:
        """Whether rows that were deleted before they could be read are left out, instead of an error."""
        return self.options.get("failondataloss", "true").lower() == "false"


def _request(given: Mapping[str, str]) -> _Request:
    options = {name.lower(): value for name, value in given.items()}
    for name in options:
        if name not in _OPTIONS:
            known = nearest(name, (each for each in _OPTIONS if each != "path"))
            raise UsageError(f"the format {FORMAT} has no option {name!r}: {known}")
    what = options.get("what", WHAT[0])
    if what not in WHAT:
        raise UsageError(f'option("what", {what!r}): there is {", ".join(WHAT)}')
    for name in options:
        if what not in _OPTIONS[name]:
            raise UsageError(
                f'option({name!r}) is for option("what") {" and ".join(_OPTIONS[name])}, and this reads '
                f"{what}: leave it out"
            )
    if options.get("failondataloss", "true").lower() not in ("true", "false"):
        raise UsageError(
            f'option("failOnDataLoss") is true or false, not {options["failondataloss"]!r}'
        )
    if "part" in options and "operator" not in options:
        raise UsageError('option("part") is a part of an operator: say option("operator"), too')
    directory = _opened(options.get("path", ""))
    spec = spec_of(directory)
    if spec.system != OWN:
        where = directory.path / "output"
        raise UsageError(f"{directory.name} is a run of {spec.system}: its output is in {where}")
    return _Request(directory, spec, options, what)


def _opened(text: str) -> RunDirectory:
    if not text:
        raise UsageError('say which run: .load("runs/NAME"), or .load("last")')
    place = path(text, "the path of a run")
    if not (place / "run.json").is_file() and place.is_dir():
        raise UsageError(f"{place.absolute()} is no run: there is no run.json in it")
    return RunDirectory.open(RUNS.absolute(), str(place))


def _stream_request(given: Mapping[str, str]) -> _Request:
    request = _request(given)
    if request.what != WHAT[0]:
        raise UsageError(
            f"only output is read as a stream: read {request.what} with spark.read instead of readStream"
        )
    if request.options["path"] == "last":
        raise UsageError(
            f"a stream goes on with one run, and the last one is another one tomorrow: say .load("
            f'"{request.directory.path}")'
        )
    protocol = request.spec.protocol
    if PROTOCOLS[protocol].publishes_at_once:
        raise UsageError(
            f"{request.directory.name} runs under {protocol}, which commits no lines, so there is nothing "
            "that a stream could read exactly once: read its output with spark.read"
        )
    return request


# What there is to read.


def _reading(request: _Request) -> Reading:
    directory = request.directory
    match request.what:
        case "log":
            return readings.channel_log(directory)
        case "checkpoints":
            return checkpoint_reading(directory)
        case "journal":
            return readings.journal(directory)
        case "seconds":
            return readings.seconds(directory)
        case "state":
            return _state(request)
        case "uncommitted":
            return readings.output(directory, request.sink, "uncommitted")
        case _:
            view = public_view(request.spec.protocol)
            return readings.output(directory, request.sink, view, lenient=request.lenient)


def _state(request: _Request) -> Reading:
    """The state of an operator, or the list of all state.

    Only operators know the columns of their state, so one task after the other is restored here, until one
    has rows.
    """
    flow, operator, part = map(request.options.get, _STATE_ONLY)
    state = KeptState(request.directory, None if flow is None else load_flow(flow))
    listing = state.listing()
    if operator is None:
        return listing
    found = (row for piece in listing.pieces for rows in listing.read(piece) for row in _rows(rows))
    return state.part(found, operator, part)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def _known_schema(request: _Request, reading: Reading) -> str:
    if reading.schema is not None:
        return reading.schema
    what = (
        f"the state of {request.options['operator']}" if request.what == "state" else request.sink
    )
    raise UsageError(
        f"nobody knows the columns of {what}, because {request.directory.name} has written no row of it: "
        'say them, .schema("name string, count bigint"), or try again later'
    )


# Reading it.


class PieceReader(DataSourceReader):
    """Reads pieces that are known beforehand: one Spark task each."""

    def __init__(self, reading: Reading, schema: StructType) -> None:
        self._reading = reading
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """One for each piece."""
        return [InputPartition(piece) for piece in self._reading.pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a piece. Where there is none, Spark makes up a partition without a value."""
        with _in_one_sentence():
            if partition.value is not None:
                yield from _fitting(self._reading.read(partition.value), self._schema)


class OutputStreamReader(DataSourceStreamReader):
    """Reads what is published of a sink, manifest by manifest."""

    def __init__(self, request: _Request, schema: StructType) -> None:
        self._directory, self._sink = request.directory, request.sink
        self._lenient = request.lenient
        self._rows = readings.output_in(self._directory, self._sink, (), lenient=self._lenient)
        self._schema = schema
        self._output: OutputReader | None = (
            None  #: knows the manifests so far; made when it is needed
        )

    @property
    def _published(self) -> OutputReader:
        self._output = self._output or self._directory.output
        return self._output

    def initialOffset(self) -> dict[str, int]:
        """Before the first manifest that was not deleted."""
        with _in_one_sentence():
            return {MANIFEST: self._published.floor().place}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # may be without limits
        """Behind the last manifest that is public by now."""
        with _in_one_sentence():
            return {MANIFEST: self._published.published()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Where the rows lie that became public between two offsets."""
        after, through = start[MANIFEST], end[MANIFEST]
        with _in_one_sentence():
            if through > (there := self._published.published()):
                raise UsageError(
                    f"the query has read manifests 1 to {through}, and {self._directory.name} has only "
                    f"{there}: its checkpoint is of another run, so give it a new checkpointLocation"
                )
            pieces = self._pieces(after, through)
        return [InputPartition(piece) for piece in pieces]

    def _pieces(self, after: int, through: int) -> list[OutputPiece]:
        """Where the rows between two offsets lie. Raises UsageError if some were deleted."""
        while True:
            try:
                return readings.output_between(
                    self._directory, self._published, self._sink, after, through
                )
            except RowsDeleted as deleted:
                if not self._lenient:
                    raise UsageError(
                        f"the query has read {self._directory.name} through manifest {after}, and "
                        f'{deleted}; .option("failOnDataLoss", "false") goes on with what is left'
                    ) from deleted
                after = min(self._published.floor().place, through)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        with _in_one_sentence():
            yield from _fitting(self._rows.read(partition.value), self._schema)


class RefusedStreamReader(DataSourceStreamReader):
    """Says why there is nothing to read, as soon as Spark asks where to begin."""

    def __init__(self, error: SnaplineError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, int]:
        """Raise the error."""
        with _in_one_sentence():
            raise self._error

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # may be without limits
        """Raise the error: a query that goes on asks for this first."""
        return self.initialOffset()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raise the error."""
        self.initialOffset()
        yield from ()


def _fitting(batches: Iterator[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """The batches with the columns that Spark expects, in its order. Raises UsageError if they differ."""
    fields: list[pa.Field] | None = None
    for batch in batches:
        fields = _fields(batch.schema, schema) if fields is None else fields
        columns = [batch.column(field.name) for field in fields]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _fields(there: pa.Schema, schema: StructType) -> list[pa.Field]:
    types = {field.name: field.dataType.simpleString() for field in from_arrow_schema(there)}
    for field in schema:
        wanted = field.dataType.simpleString()
        if field.name not in types:
            known = ", ".join(f"{name} {kind}" for name, kind in types.items())
            raise UsageError(f"there is no column {field.name!r}: there is {known}")
        if types[field.name] != wanted:
            raise UsageError(
                f"column {field.name!r} is {types[field.name]}, and .schema() says {wanted}: say "
                f"{types[field.name]}, and cast it afterwards"
            )
    return [there.field(field.name).with_nullable(field.nullable) for field in schema]
