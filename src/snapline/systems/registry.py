"""The systems that can be put to the test, by name, and how one is chosen on the command line.

`structured-streaming`, or with options of its own: `structured-streaming sink=at-least-once`.
A distribution of others brings one by an entry point in the group `snapline.systems` that names an `Entry`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from snapline.arguments import nearest
from snapline.errors import UsageError
from snapline.plugins import Catalogue
from snapline.rundir.spec import OWN
from snapline.systems.harness.base import System

OWN_SUMMARY = "Snapline's own engine, on Spark and in the simulator"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a system before it is made: a summary, how to make it, its options."""

    summary: str  # one line, for people
    make: Callable[..., System]
    options: Mapping[str, str] = field(default_factory=dict)  # name -> how it is written


def _structured_streaming(**options: str) -> System:
    from snapline.systems.structured_streaming.adapter import StructuredStreaming  # imports Spark

    return StructuredStreaming(**options)


SYSTEMS = Catalogue(
    "system",
    Entry,
    {
        "structured-streaming": Entry(
            "Spark Structured Streaming: micro-batches, its own checkpoint and file sink",
            _structured_streaming,
            {
                "sink": "sink=exactly-once, or at-least-once: a control that has to be caught",
                "executors": "executors=N: so many processes of their own that can be killed",
            },
        )
    },
    __name__,
)
"""The systems under test: Snapline's adapters, and those that installed distributions bring."""


def system_of(text: str) -> System:
    """Make the system that a text such as `structured-streaming executors=2` names. Raises UsageError."""
    name, *words = text.split()
    if name not in SYSTEMS:
        raise UsageError(f"there is no system {name!r}; {nearest(name, [OWN, *SYSTEMS])}")
    known = SYSTEMS[name].options
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in known:
            able = ", ".join(f"{option}=" for option in known)
            raise UsageError(f"{name} has the options {able}: {word!r} is none of them")
        if key in options:
            raise UsageError(f"{key}= stands there twice: '{text}'")
        options[key] = value
    return SYSTEMS[name].make(**options)
