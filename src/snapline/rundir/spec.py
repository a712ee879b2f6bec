"""What to run: the one description that the command line, the API and a resume share.

`RULES` says for every argument of a run what it may be; `spec_from` makes a description of what was given.
Both are the same for `sl.run(interval="5s")` and for `snapline run --interval 5s`. Later a run directory is
the only place from which a description comes (`spec_of`).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from snapline import arguments
from snapline.arguments import Rule, instance, one_of, optional, span, whole
from snapline.chaos.faults import describe
from snapline.chaos.plan_file import read_plan
from snapline.chaos.soak import soak
from snapline.core.guarantee import Guarantee
from snapline.dataflow.usage.policies import Sayings, inputs_rule, save_rule
from snapline.durations import LONGEST_MS, millis, write_duration
from snapline.engine.options import (
    KEPT_LINES_MAX,
    GivenOptions,
    paired_options,
    read_options,
    stored_options,
)
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.protocols import DEFAULT, PROTOCOLS
from snapline.rundir.directory import FOLDERS, MEANINGS, STAGED, RunDirectory
from snapline.workload import WORKLOADS, settings_of
from snapline.workload.common.base import Params, Size, size_of
from snapline.workload.common.generated import records_per_partition
from snapline.workload.common.settings import GivenSettings, paired

LOOPBACK = "127.0.0.1"
FOREVER: Final = "forever"
"""The duration of a run without an end."""

OWN = "snapline"
"""The name of Snapline itself among the systems that can be run; only it has slots and protocols."""

RETAINED_INTERVALS = 4
"""For how many checkpoint intervals output has to be kept at least."""

SLOTS_MAX = 1_000
RECORDS_MAX = 1 << 40
SEED_MAX = (1 << 63) - 1
_SETTINGS = (-(1 << 63), (1 << 63) - 1)


NO_FIELDS = ("version", "id", "forked_from", "sinks", FOLDERS, MEANINGS, STAGED)
"""What `run.json` says beside the fields of a `Spec`: what it is, and what follows from the flow."""

_OF_WORKLOADS = ("rate", "records", "size", "hot", "hot_ms", "settings", "input")
"""Fields that only apply to workloads: a dataflow of the user's own brings its sources with it."""


@dataclass(frozen=True, slots=True, repr=False)
class Spec:
    """What a run was asked to do: all that a resume needs. Some fields are for workloads only."""

    flow: str  # a workload, `my_flow.py:flow`, or the name of a dataflow that a program holds
    _: KW_ONLY
    protocol: str = DEFAULT  # empty for another system
    guarantee: str | None = None  # None: the protocol's first promise
    slots: int = 2  # those of the first pool
    rate: int | Literal["max"] = 2_000  # records per second; max: all are due at once
    duration_ms: Millis = 20_000  # for how long input is due
    cut: bool = False  # the duration was given: a DataFrame is not read beyond it
    interval_ms: Millis = 5_000  # between two checkpoints
    faults: str = ""  # statements as in docs/faults.md, with "; " between them
    spares: int = 0  # processes that wait for a slot to be lost
    seed: int = 1  # of the generated input, and of what is drawn
    input: str | None = None  # a directory that `generate` has written
    reference: bool = False  # judge by a run without failures
    publish_lag: int = 0  # lines to commit after a line before its output is public
    journal: Literal["brief", "full"] = "brief"  # full: with every message
    listen: str = LOOPBACK  # the address at which the driver can be reached
    origin_s: float | None = None  # when input began to be due; a resumed run keeps it
    records: int = 1_000_000  # how many there are if they are due at once
    size: Size = "full"  # full: the papers' sizes; small: those of the simulator
    hot: int = 0  # percent of the records that name the hot key
    hot_ms: Millis = 0  # after how long another key becomes the hot one; 0: never
    settings: GivenSettings = ()  # those of the workload that were given
    options: GivenOptions = ()  # those of engine and protocol that were given
    drawn: bool = False  # the faults come from a seed (chaos): some of them may miss
    allow_vacuous: bool = False  # a run that proved nothing may be said to have kept its promise
    shared: bool = False  # the run directory is not for its owner alone: the umask decides
    system: str = OWN  # or a system under test, with its options: see `systems.registry`
    endless: bool = False  # input has no end; `duration_ms` is what its sizes are worked out for
    retain_ms: Millis | None = None  # for how long published output is kept; None: for ever
    oversubscribe: bool = False  # more slots than the cores of this machine can serve in time
    pools: tuple[tuple[str, int], ...] = ()  # slots of the pools of the dataflow, beside `slots`
    save: Sayings = ()  # how often operators are saved, whatever the dataflow says
    inputs: Sayings = ()  # what becomes of their input while they are away
    warm_up_ms: Millis = 0  # the seconds that begin before this do not count in figures

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", paired(self.settings))  # run.json has lists, not pairs
        object.__setattr__(self, "options", paired_options(self.options))
        object.__setattr__(self, "pools", tuple((str(name), int(n)) for name, n in self.pools))
        object.__setattr__(self, "save", tuple((str(name), str(how)) for name, how in self.save))
        object.__setattr__(self, "inputs", tuple((str(n), str(how)) for n, how in self.inputs))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.said().items())
        return f"Spec({said})"

    def said(self) -> dict[str, Any]:
        """The fields that apply to this run, by name: they are stored in `run.json` and shown to people."""
        left_out: tuple[str, ...] = ()
        if self.flow not in WORKLOADS:
            left_out = _OF_WORKLOADS
        elif self.rate != "max":
            left_out = ("records", "cut")
        else:
            left_out = ("cut",)
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @property
    def all_slots(self) -> int:
        """How many slots there are in all pools."""
        return self.slots + sum(size for _, size in self.pools)

    @property
    def params(self) -> Params:
        """The size of the generated input."""
        if self.rate == "max":
            records = max(1, self.records // self.slots)
        else:
            records = records_per_partition(self.rate, self.slots, self.duration_ms)
        return Params(
            self.seed,
            self.slots,
            records,
            self.duration_ms,
            at_once=self.rate == "max",
            full=self.size == "full",
            hot=self.hot,
            hot_ms=self.hot_ms,
            settings=self.settings,
            endless=self.endless,
        )


def spec_of(directory: RunDirectory) -> Spec:
    """Read from its directory what a run was asked to do. Raises UsageError."""
    kept = directory.spec()
    fields = {name: value for name, value in kept.items() if name not in NO_FIELDS}
    try:
        rules = STORED if fields.get("system", OWN) == OWN else STORED_OF_SYSTEM
        arguments.read({name: rules.get(name, _anything) for name in fields}, fields, str)
    except UsageError as error:
        raise UsageError(f"{directory.path / 'run.json'} was changed: {error}") from error
    try:
        return Spec(**fields)
    except TypeError as error:
        raise UsageError(f"{directory.path} was written by another version: {error}") from error


def _anything(value: Any, name: str) -> Any:
    return value


def _given_settings(value: Any, name: str) -> GivenSettings:
    """The settings of a workload, as JSON has them: pairs of a name and a number."""
    try:
        return tuple((str(each), whole(*_SETTINGS)(number, name)) for each, number in value)
    except (TypeError, ValueError):
        raise arguments.refused(name, "a list of names with their numbers", value) from None


def a_duration(value: Any, name: str) -> Millis | Literal["forever"]:
    """A rule for how long input comes: a duration, or `forever`."""
    if value == FOREVER:
        return FOREVER
    try:
        return millis(value, name, least_ms=1, most_ms=LONGEST_MS)
    except UsageError as error:
        raise UsageError(f"{error}; or {FOREVER!r}") from None


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "flow": arguments.text,
        "protocol": one_of("protocol", PROTOCOLS),
        "guarantee": optional(one_of("guarantee", [level.value for level in Guarantee])),
        "slots": optional(whole(1, SLOTS_MAX)),
        "pools": arguments.numbered(1, SLOTS_MAX),
        "save": save_rule,
        "inputs": inputs_rule,
        "rate": arguments.a_rate,
        "records": whole(1, RECORDS_MAX),
        "duration": a_duration,
        "interval": span(1),
        "faults": arguments.texts,
        "chaos": optional(arguments.text),
        "spares": whole(0, SLOTS_MAX),
        "seed": whole(0, SEED_MAX),
        "size": size_of,
        "hot": whole(0, 100),
        "hot_moves": span(0),
        "settings": arguments.pairs,
        "options": arguments.named,
        "input": optional(arguments.path),
        "reference": arguments.flag,
        "publish_lag": whole(0, KEPT_LINES_MAX - 1),
        "retain": optional(span(1)),
        "warm_up": span(0),
        "journal": one_of("journal", ("brief", "full")),
        "listen": arguments.text,
        "oversubscribe": arguments.flag,
        "allow_vacuous": arguments.flag,
        "shared": arguments.flag,
        "system": arguments.text,
    }
)
"""The rule for each argument of a run, by name."""

STORED: Mapping[str, Rule] = MappingProxyType(
    {
        **{name: RULES[name] for name in RULES if name in Spec.__dataclass_fields__},
        "slots": whole(1, SLOTS_MAX),
        "duration_ms": whole(1, LONGEST_MS),
        "interval_ms": whole(1, LONGEST_MS),
        "hot_ms": whole(0, LONGEST_MS),
        "retain_ms": optional(whole(1, LONGEST_MS)),
        "warm_up_ms": whole(0, LONGEST_MS),
        "faults": instance(str, "a text"),
        "settings": _given_settings,
        "options": stored_options,
        "drawn": arguments.flag,
        "cut": arguments.flag,
        "endless": arguments.flag,
        "origin_s": optional(arguments.moment),
    }
)
"""The rule for each field of a `Spec` in `run.json`, which somebody may have changed by hand."""

STORED_OF_SYSTEM: Mapping[str, Rule] = MappingProxyType(
    {**STORED, "flow": one_of("workload", WORKLOADS), "protocol": instance(str, "a text")}
)
"""As `STORED`, for a run of another system: it runs a workload, and has no protocol."""


_USUAL = Spec("")
"""A description with all defaults."""

_MADE = ("hot_moves", "warm_up", "settings", "options")
"""Arguments that `spec_from` turns into fields of another name or form."""


def spec_from(given: Mapping[str, Any], written: Callable[[str], str]) -> Spec:
    """Make a description of what was given; `written` is how the user writes a name. Raises UsageError.

    What is not given has its default.
    """
    values = arguments.read(RULES, given, written)
    flow, given_ms = values["flow"], values.pop("duration", None)
    if endless := given_ms == FOREVER:
        _refuse_endless(values, written)
        given_ms = None
    duration_ms = _USUAL.duration_ms if given_ms is None else given_ms
    slots = values["slots"] = values.get("slots") or default_slots()
    faults, chaos = _named(values.pop("faults", "")), values.pop("chaos", None)
    if faults and chaos is not None:
        both = f"{written('faults')} and {written('chaos')} exclude each other"
        raise UsageError(f"{both}: name the faults, or draw them")
    input = values.pop("input", None)
    interval = {"interval_ms": values.pop("interval")} if "interval" in values else {}
    retain_ms = values.pop("retain", None)
    if retain_ms is not None:
        _refuse_retain(retain_ms, interval.get("interval_ms", _USUAL.interval_ms), values, written)
    made = flow in WORKLOADS and input is None and not endless and values.get("rate") != "max"
    if made or given_ms is not None:
        _refuse_warm_up(values.get("warm_up", 0), duration_ms, written)
    return Spec(
        **{name: value for name, value in values.items() if name not in _MADE},
        **interval,
        warm_up_ms=values.get("warm_up", 0),
        duration_ms=duration_ms,
        endless=endless,
        cut=given_ms is not None and flow not in WORKLOADS,
        retain_ms=retain_ms,
        faults=faults if chaos is None else describe(soak(chaos, slots, duration_ms)),
        drawn=chaos is not None,
        input=None if input is None else str(input.resolve()),
        hot_ms=values.get("hot_moves", 0),
        settings=settings_of(flow, values.get("settings", {})),
        options=read_options(values.get("options", {})),
    )


def _refuse_retain(
    retain_ms: Millis,
    interval_ms: Millis,
    values: Mapping[str, Any],
    written: Callable[[str], str],
) -> None:
    """Raise UsageError if output would be deleted before anybody could read it, or is needed later."""
    name = written("retain")
    if retain_ms < RETAINED_INTERVALS * interval_ms:
        least = write_duration(RETAINED_INTERVALS * interval_ms)
        raise UsageError(
            f"{name} is at least {RETAINED_INTERVALS} times {written('interval')}, here {least}, and not "
            f"{write_duration(retain_ms)}: output becomes public once in an interval, and has to be read"
        )
    if values.get("reference"):
        raise UsageError(
            f"{name} does not go together with {written('reference')}: it compares all of the output"
        )


def _refuse_warm_up(ms: Millis, duration_ms: Millis, written: Callable[[str], str]) -> None:
    """Raise UsageError if a warm-up is longer than input comes."""
    if ms > duration_ms:
        most = f"{written('duration')}, here {write_duration(duration_ms)}"
        raise UsageError(f"{written('warm_up')} is at most {most}, and not {write_duration(ms)}")


def _refuse_endless(values: Mapping[str, Any], written: Callable[[str], str]) -> None:
    """Raise UsageError if something was given that needs an end of the input."""
    endless = f"{written('duration')} {FOREVER}"
    needs = {
        "rate": (
            values.get("rate") == "max",
            "max makes all records due at once, and they never end",
        ),
        "reference": (values.get("reference"), "compares with runs that come to their end"),
        "chaos": (
            values.get("chaos") is not None,
            "draws faults for a duration: name faults instead",
        ),
        "system": (values.get("system", OWN) != OWN, "has another system read input to its end"),
    }
    for name, (given, why) in needs.items():
        if given:
            raise UsageError(f"{written(name)} does not go together with {endless}: it {why}")


def refuse_idle(given: Mapping[str, Any], written: Callable[[str], str]) -> None:
    """Raise UsageError if an argument was given, even with its default, that changes nothing here."""
    stated = {name: value for name, value in given.items() if value is not None}
    for names, why in _idle(stated, written):
        for name in names:
            if name in stated:
                raise UsageError(f"{written(name)} {why}")


def _idle(
    stated: Mapping[str, Any], written: Callable[[str], str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Names of arguments that change nothing beside those that were given, and why."""
    flow, protocol = stated["flow"], PROTOCOLS.get(stated.get("protocol", DEFAULT))
    if protocol is not None and not protocol.saves:
        why = f"changes nothing under {protocol.name}, which takes no checkpoints: leave it out"
        yield ("interval",), why
    if protocol is not None and protocol.publishes_at_once:
        why = f"changes nothing under {protocol.name}, which has no lines: leave it out"
        yield ("publish_lag", "retain"), why
    if not isinstance(flow, str) or (flow not in WORKLOADS and stated.get("system", OWN) == OWN):
        own = flow if isinstance(flow, str) else flow.name
        yield ("rate", "records", "size"), f"is for workloads; {own} brings its own sources"
    elif "input" in stated:
        why = "is for input that is made during the run: stored input has its own, so leave it out"
        yield ("rate", "records", "size"), why
        if "chaos" not in stated:  # which takes as long
            yield ("duration",), why
    elif stated.get("rate") != "max":
        yield (
            ("records",),
            f"is how many there are if all are due at once: say {written('rate')} max, too, or a "
            f"{written('duration')} instead",
        )


def default_slots() -> int:
    """How many slots a run has if nobody says: the cores that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def _named(faults: str | tuple[str, ...]) -> str:
    return read_plan(faults) if isinstance(faults, str) else "; ".join(map(read_plan, faults))
