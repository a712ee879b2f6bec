"""The command that makes a run again, from what its directory says about it.

Every field of a `Spec` is in one of the tables below (test), so that a new one cannot be forgotten: a
command that leaves out what protected a run makes another run.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from snapline.durations import LONGEST_MS, write_duration

#: the fields of `run.json` that an option says, in the order in which people expect them
_PLAIN: Mapping[str, tuple[str, Any]] = {
    "system": ("--system", "snapline"),
    "protocol": ("--protocol", None),
    "guarantee": ("--guarantee", None),
    "slots": ("--slots", None),
    "rate": ("--rate", 2_000),
    "records": ("--records", 1_000_000),
    "spares": ("--spares", 0),
    "seed": ("--seed", 1),
    "size": ("--size", "full"),
    "hot": ("--hot", 0),
    "publish_lag": ("--publish-lag", 0),
    "listen": ("--listen", "127.0.0.1"),
    "input": ("--input", None),
    "faults": ("--faults", ""),
}
_TIMES: Mapping[str, tuple[str, Any]] = {
    "duration_ms": ("--duration", 20_000),
    "interval_ms": ("--interval", 5_000),
    "hot_ms": ("--hot-moves", 0),
    "warm_up_ms": ("--warm-up", 0),
    "retain_ms": ("--retain", None),
}
_FLAGS = {
    "reference": "--reference",
    "oversubscribe": "--oversubscribe",
    "shared": "--shared",
    "allow_vacuous": "--allow-vacuous",
}
_PAIRS = {
    "settings": "--set",
    "options": "--option",
    "pools": "--pool",
    "save": "--save",
    "inputs": "--inputs",
}
WITHOUT_OPTION: Mapping[str, str] = {
    "flow": "it is the argument of the command",
    "journal": "--full-journal says it",
    "endless": "--duration says it",
    "cut": "--duration says it",
    "drawn": "the command names the faults that were drawn",
    "origin_s": "another run begins at another time",
}
"""The fields that have no option of their own, and why."""

OPTIONS: Mapping[str, str] = {
    **{name: option for name, (option, _) in (*_PLAIN.items(), *_TIMES.items())},
    **_FLAGS,
    **_PAIRS,
}
"""The option of every other field."""


def command_of(spec: Mapping[str, Any]) -> str:
    """The command as a shell takes it; a dataflow that a program held is named as it was."""
    return shlex.join(["snapline", "run", str(spec.get("flow", "?")), *_options(spec)])


def _options(spec: Mapping[str, Any]) -> Iterator[str]:
    for name, (option, usual) in _PLAIN.items():
        value = spec.get(name)
        if value not in (None, "", usual):
            yield from (option, str(value))
    yield from _times(spec)
    yield from (option for name, option in _FLAGS.items() if spec.get(name) is True)
    if spec.get("journal") == "full":
        yield "--full-journal"
    for name, option in _PAIRS.items():
        given = spec.get(name)
        for each in given if isinstance(given, list | tuple) else ():
            if isinstance(each, list | tuple) and len(each) == 2:
                yield from (option, f"{each[0]}={each[1]}")


def _times(spec: Mapping[str, Any]) -> Iterator[str]:
    """The options that say times. A duration that was given for DataFrames is said in any case: it cuts."""
    for name, (option, usual) in _TIMES.items():
        value = spec.get(name)
        if name == "duration_ms" and spec.get("endless"):
            yield from (option, "forever")
        elif type(value) is int and 0 < value <= LONGEST_MS:
            cuts = name == "duration_ms" and spec.get("cut") is True
            if value != usual or cuts:
                yield from (option, write_duration(value))
