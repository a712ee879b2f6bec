"""What a user gives, read and checked: one rule for each argument, the same for programs and for the shell.

A rule takes what was given and the name under which it was given (`interval`, `--interval`), and returns it
in the one form that the rest of the code knows. What it cannot take is a UsageError that has the name, what
was given and what is allowed. `checked` puts rules in front of a function, so that a wrong type is said at
once and in one sentence, instead of failing somewhere inside.
"""

import difflib
import inspect
import operator
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar
from urllib.parse import unquote

from snapline.durations import LONGEST_MS, millis
from snapline.errors import UsageError
from snapline.ids import Millis

Rule: TypeAlias = Callable[[Any, str], Any]
"""(what was given, its name) -> its value. Raises UsageError."""

RATE_MAX = 1_000_000_000
YEAR_9999_S = 253_000_000_000

P = ParamSpec("P")
R = TypeVar("R")


def whole(least: int, most: int) -> Rule:
    """A rule for whole numbers from `least` to `most`. True, False and texts are refused."""
    allowed = f"a whole number from {least:,} to {most:,}"

    def rule(value: Any, name: str) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            raise refused(name, allowed, value) from None
        if isinstance(value, bool) or not least <= number <= most:
            raise refused(name, allowed, value)
        return number

    return rule


def span(least_ms: Millis, most_ms: Millis = LONGEST_MS) -> Rule:
    """A rule for durations between two bounds, given as a text or in milliseconds."""
    return lambda value, name: millis(value, name, least_ms=least_ms, most_ms=most_ms)


def one_of(kind: str, known: Collection[str]) -> Rule:
    """A rule for one of some known names; for any other the message suggests the most similar.

    The known names are listed only for a message: some may be plugins, which take time to be loaded.
    """

    def rule(value: Any, name: str) -> str:
        if isinstance(value, str) and value in known:
            return value
        if not isinstance(value, str):
            raise refused(name, f"the name of a {kind} ({', '.join(known)})", value)
        raise UsageError(f"{name}: there is no {kind} {shown(value)}; {nearest(value, known)}")

    return rule


def text(value: Any, name: str) -> str:
    """A rule for a text that is not empty."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise refused(name, "a text that is not empty", value)
    return value


def flag(value: Any, name: str) -> bool:
    """A rule for True or False."""
    if not isinstance(value, bool):
        raise refused(name, "True or False", value)
    return value


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/+)(.*)", re.DOTALL)
"""A URL, also one of which `Path` has already made `s3:/bucket`."""


def path(value: Any, name: str) -> Path:
    """A rule for a path of this machine, as a text, a `Path`, or `file:///DIR`; other URLs are refused."""
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise refused(name, "a path", value)
    url = _URL.fullmatch(str(value))
    if url is None or Path(value).exists():
        return Path(value)
    scheme, slashes, rest = url.groups()
    elsewhere = slashes == "//" and not rest.startswith("localhost/")  # it names another host
    if scheme != "file" or elsewhere:
        raise UsageError(
            f"{name} {scheme}://{rest.lstrip('/')}: only local or mounted paths so far, written as DIR or "
            "file:///DIR"
        )
    return Path("/" + unquote(rest.removeprefix("localhost/")))


def texts(value: Any, name: str) -> str | tuple[str, ...]:
    """A rule for a text, or a list of texts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping | bytes) and isinstance(value, Iterable):
        several = tuple(value)
        if all(isinstance(each, str) for each in several):
            return several
    raise refused(name, "a text, or a list of texts", value)


def moment(value: Any, name: str) -> float:
    """A rule for a moment: seconds since 1970, within the years that a calendar has."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value < YEAR_9999_S
    ):
        raise refused(name, "a time in seconds since 1970", value)
    return value


def a_rate(value: Any, name: str) -> int | Literal["max"]:
    """A rule for a rate: records per second, or `max`."""
    if isinstance(value, str) and value == "max":
        return "max"
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= RATE_MAX:
        allowed = f"a whole number of records per second from 1 to {RATE_MAX:,}, or 'max'"
        raise refused(name, allowed, value)
    return value


def written_rate(text: str, name: str) -> int | Literal["max"]:
    """A rule for a rate as the shell gives it, as a text: digits, or "max"."""
    return a_rate(
        int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text, name
    )


def pairs(value: Any, name: str) -> Mapping[str, str | int]:
    """A rule for a dict of names and values: texts, or whole numbers."""
    if isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(each, str | int) and not isinstance(each, bool)
        for key, each in value.items()
    ):
        return dict(value)
    raise refused(name, "a dict of names and their values, each a text or a whole number", value)


def named(value: Any, name: str) -> Mapping[str, Any]:
    """A rule for a dict with texts as keys; the values are checked where the keys are known."""
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return dict(value)
    raise refused(name, "a dict of names and their values", value)


def numbered(least: int, most: int) -> Rule:
    """A rule for names with a whole number each: a dict, or as JSON has it, a list of pairs."""
    number = whole(least, most)

    def rule(value: Any, name: str) -> tuple[tuple[str, int], ...]:
        pairs = value.items() if isinstance(value, Mapping) else value
        try:
            return tuple((str(each), number(n, f"{name}: {each}")) for each, n in pairs)
        except (TypeError, ValueError):
            raise refused(name, "a dict of names and whole numbers", value) from None

    return rule


def instance(kind: type | tuple[type, ...], allowed: str) -> Rule:
    """A rule for values of a type; `allowed` says in words what they are."""

    def rule(value: Any, name: str) -> Any:
        if not isinstance(value, kind):
            raise refused(name, allowed, value)
        return value

    return rule


def optional(rule: Rule) -> Rule:
    """A rule that allows None as well as what another rule allows."""
    return lambda value, name: None if value is None else rule(value, name)


def refused(name: str, allowed: str, value: Any) -> UsageError:
    """Make the error for an argument that is not allowed: its name, what is allowed, what was given."""
    return UsageError(f"{name} is {allowed}, not {shown(value)}")


def shown(value: Any) -> str:
    """What was given, as a message quotes it: shortened if it is long."""
    if isinstance(value, str) and len(value) <= 60:
        return repr(value)
    return reprlib.repr(value)


def nearest(name: str, names: Iterable[str]) -> str:
    """What a message says after an unknown name: the names most like it, or else all there are.

    All our names are in small letters, so capitals in `name` make no difference.
    """
    known = tuple(names)
    near = difflib.get_close_matches(name.lower(), known, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"


def read(
    rules: Mapping[str, Rule], given: Mapping[str, Any], written: Callable[[str], str]
) -> dict[str, Any]:
    """Put each given value through the rule of its name; `written` is how a user writes a name."""
    return {name: rules[name](value, written(name)) for name, value in given.items()}


def option(name: str) -> str:
    """How the shell writes a name: `--hot-moves`."""
    return f"--{name.replace('_', '-')}"


def checked(
    rules: Mapping[str, Rule],
    together: Callable[[Mapping[str, Any], Callable[[str], str]], None] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a decorator that puts the arguments of a call through their rules before the function runs.

    An argument that the function does not have is a UsageError as well. `together` then looks at all
    arguments that were given, without those that have their defaults, and at how a user writes a name; it
    raises UsageError if they do not go together.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in signature.parameters:
                    hint = nearest(name, signature.parameters)
                    raise UsageError(f"{function.__name__}() has no argument {name!r}; {hint}")
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise UsageError(f"{function.__name__}(): {error}") from None
            given = read(rules, bound.arguments, str)
            if together is not None:
                together(given, str)
            bound.arguments.update(given)
            return function(*bound.args, **bound.kwargs)

        return call

    return decorate
