"""The options of a run: what a user may set about its engine and its protocol, one line of a table each.

Everything else is made from `OPTIONS`: what `options={"batch": 500}` and `--option batch=500` accept, what
`snapline list options` shows, what a run directory remembers, and what is refused because the chosen
protocol would not heed it. No option changes what a dataflow computes; they change when and how it is sent,
saved and published. A resumed run keeps the options with which it began.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from snapline.arguments import nearest, refused, span, whole
from snapline.core.protocol import CheckpointProtocol, Options
from snapline.dataflow.deploy import Deployment
from snapline.durations import LONGEST_MS, write_duration
from snapline.engine.job import Settings
from snapline.errors import UsageError
from snapline.ids import Millis

GivenOptions: TypeAlias = tuple[tuple[str, int], ...]
"""(name, value) of the options that were given, sorted by name."""

_FLAGS = {"yes": 1, "no": 0}
KEPT_LINES_MAX = 16
_HOUR_MS: Millis = 3_600_000


@dataclass(frozen=True, slots=True)
class RunOption:
    """One option. Its value is a number: durations are milliseconds, and yes is 1."""

    name: str
    part: Literal["protocol", "engine", "graph"]  # who heeds it
    field: str  # of the protocol's `Options` or the engine's `Settings`
    summary: str  # one line, for people
    kind: Literal["number", "duration", "flag"] = "number"
    least: int = 0
    most: int = 1_000_000

    @property
    def default(self) -> int:
        """The value that holds in a real run if the option is not given."""
        if self.part == "graph":
            return 1
        usual: Any = Options() if self.part == "protocol" else Settings()
        return int(getattr(usual, self.field))

    def read(self, value: Any) -> int:
        """The value that a user gave, as a text or not. Raises UsageError."""
        what = f"the option {self.name}"
        if self.kind == "flag":
            known = _FLAGS.get(str(value), value)
            if not isinstance(known, int) or known not in (0, 1):
                raise refused(what, "yes or no", value)
            return int(known)
        if self.kind == "duration":
            return int(span(self.least, self.most)(value, what))
        digits = isinstance(value, str) and value.isascii() and value.isdecimal()
        number = int(value) if digits and len(value) < 20 else value
        return int(whole(self.least, self.most)(number, what))

    def write(self, value: int) -> str:
        """A value as a user writes it."""
        if self.kind == "flag":
            return "yes" if value else "no"
        return write_duration(value) if self.kind == "duration" else str(value)

    def used_by(self, protocol: CheckpointProtocol) -> bool:
        """Whether the option changes anything under a protocol."""
        return self.part != "protocol" or self.field in protocol.reads


OPTIONS: Mapping[str, RunOption] = MappingProxyType(
    {
        option.name: option
        for option in (
            RunOption(
                "batch",
                "engine",
                "batch_max_records",
                "records that a source reads, and an operator takes, at once; fewer if fewer are due. "
                "If this is left as it is, a source that lags behind reads four times as many",
                least=1,
            ),
            RunOption(
                "linger",
                "engine",
                "linger_ms",
                "how long a source gathers due records before it is read again",
                "duration",
                most=60_000,
            ),
            RunOption(
                "credit",
                "engine",
                "credit",
                "messages that may be under way on a channel before its sender has to wait",
                least=1,
            ),
            RunOption(
                "fused",
                "graph",
                "lean",
                "whether operators that need no message between them are one task, and send only "
                "columns that are read",
                "flag",
            ),
            RunOption(
                "compress",
                "engine",
                "compress",
                "whether snapshots and logged messages are compressed: less is stored, more is computed",
                "flag",
            ),
            RunOption(
                "group_rows",
                "engine",
                "group_rows",
                "rows of a sliding window that are stored together, and not again once they are full; "
                "0: about as many as come between two checkpoints",
                most=1 << 24,
            ),
            RunOption(
                "align_timeout",
                "protocol",
                "align_timeout_ms",
                "how long a task first tries to align before markers overtake; 0ms: they always do",
                "duration",
                most=_HOUR_MS,
            ),
            RunOption(
                "deadline",
                "protocol",
                "deadline_ms",
                "a round of checkpoints that takes longer is aborted",
                "duration",
                least=1,
                most=LONGEST_MS,
            ),
            RunOption(
                "every_records",
                "protocol",
                "every_records",
                "records after which a task takes a checkpoint, unless its interval ends before; 0: never",
                most=1_000_000_000,
            ),
            RunOption(
                "at_window_close",
                "protocol",
                "at_window_close",
                "whether a task takes a checkpoint when it has closed a window: its state is small then",
                "flag",
            ),
            RunOption(
                "line_max_lag",
                "protocol",
                "line_max_lag",
                "checkpoints that a task may be ahead of the recovery line before a round is ordered; "
                "0: never",
            ),
            RunOption(
                "kept_lines",
                "protocol",
                "kept_lines",
                "committed lines that stay whole; more than publish_lag, which is useful only with them",
                least=1,
                most=KEPT_LINES_MAX,
            ),
        )
    }
)
"""Every option of a run, by name; beside these there is one for each operator: `INTERVAL_OF`."""

INTERVAL_OF = RunOption(
    "interval.OPERATOR",
    "protocol",
    "intervals_ms",
    "the interval of the tasks of one operator, such as interval.count=2s; all others have that of the run",
    "duration",
    least=1,
    most=LONGEST_MS,
)
"""The interval of one operator: an option for each, so that its value is a number as all others are."""
_INTERVAL = "interval."


def option_named(name: str) -> RunOption:
    """The option of this name. Raises UsageError if there is none."""
    if name.startswith(_INTERVAL) and name != _INTERVAL:
        return replace(INTERVAL_OF, name=name)
    if name not in OPTIONS:
        known = nearest(name, (*OPTIONS, INTERVAL_OF.name))
        raise UsageError(f"there is no option {name!r}; {known}")
    return OPTIONS[name]


def read_options(given: Mapping[str, Any]) -> GivenOptions:
    """The options that a user gave, each checked by itself. Raises UsageError."""
    return tuple(sorted((name, option_named(name).read(value)) for name, value in given.items()))


def idle_option(given: GivenOptions, protocol: CheckpointProtocol) -> str | None:
    """A sentence about an option that a protocol does not heed; None if it heeds all that were given."""
    options = (*OPTIONS.values(), INTERVAL_OF)
    able = ", ".join(option.name for option in options if option.used_by(protocol))
    for name, _ in given:
        if not option_named(name).used_by(protocol):
            return f"the option {name} changes nothing under {protocol.name}, which heeds {able}"
    return None


def unfit_option(given: GivenOptions, deployment: Deployment) -> str | None:
    """A sentence about an option that means nothing to a dataflow; None if there is none."""
    operators = deployment.operators
    for operator, _ in _intervals(given):
        if operator not in operators:
            return (
                f"{_INTERVAL}{operator} is the interval of no task: the tasks of this run are those of "
                f"{', '.join(operators)} (operators that are fused have one task, under one name)"
            )
    if dict(given).get("at_window_close") and not deployment.follows_time:
        return "the option at_window_close is for dataflows with windows, and this one has none"
    return None


def _intervals(given: GivenOptions) -> tuple[tuple[str, Millis], ...]:
    """The intervals that operators were given, by their names."""
    own = ((name, ms) for name, ms in given if name.startswith(_INTERVAL))
    return tuple((name.removeprefix(_INTERVAL), ms) for name, ms in own)


def stored_options(value: Any, name: str) -> GivenOptions:
    """The options in a file: pairs of a name and a number. Raises UsageError."""
    try:
        return read_options({str(each): whole(0, LONGEST_MS)(n, name) for each, n in value})
    except (TypeError, ValueError):
        raise refused(name, "a list of names with their numbers", value) from None


def paired_options(given: Iterable[Sequence[Any]]) -> GivenOptions:
    """Options as sorted pairs of name and number, also if they come from a file as lists."""
    return tuple(sorted((str(name), int(value)) for name, value in given))


def is_fused(given: GivenOptions, default: bool) -> bool:
    """Whether the operators of a graph are to be fused."""
    return bool(dict(given).get("fused", default))


def protocol_options(given: GivenOptions, usual: Options) -> Options:
    """The options of the protocol: as given, or the usual ones."""
    intervals = _intervals(given) or usual.intervals_ms
    return replace(usual, intervals_ms=intervals, **_fields(given, "protocol"))


def engine_settings(given: GivenOptions, usual: Settings) -> Settings:
    """The settings of the engine: as given, or the usual ones. Batches of an unusual size do not grow."""
    settings = replace(usual, **_fields(given, "engine"))
    if settings.batch_max_records != usual.batch_max_records:
        settings = replace(settings, batch_growth=1)
    return settings


def _fields(given: GivenOptions, part: str) -> dict[str, Any]:
    known = ((OPTIONS[name], value) for name, value in given if name in OPTIONS)
    return {
        option.field: bool(value) if option.kind == "flag" else value
        for option, value in known
        if option.part == part
    }
