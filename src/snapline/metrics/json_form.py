"""Writes frozen results as plain JSON, reads them back, and describes that JSON.

Reading is strict: what a version does not know is refused, and not half understood. The description follows
from the dataclasses too: their types give a JSON Schema, and the comment behind a field is its definition.
So a figure is defined in one place, which the schema, `snapline list figures` and docs/figures.md repeat.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from snapline.core.forms import NUMBER, Forms, Hint, Json
from snapline.metrics.costs import ByteFigures
from snapline.metrics.second import Volume

_T = TypeVar("_T")


_FORMS = Forms({float: NUMBER})


def to_json(value: Any) -> Json:
    """Write a dataclass, and all that is in it, as plain values."""
    return _FORMS.record(type(value)).write(value)


def from_json(kind: type[_T], written: Json) -> _T:
    """Read a dataclass from its plain values. Raises ValueError, which names what does not fit.

    A field that has a default may be missing: what was written before there was such a field is read.
    """
    if isinstance(written, dict):
        added = {name: value for name, value in _added(kind).items() if name not in written}
        written = {**written, **added}
    read: _T = _FORMS.record(kind).read(written)
    return read


def _added(kind: type) -> Mapping[str, Json]:
    """The defaults of the fields that have one, as they would be written."""
    hints = get_type_hints(kind)
    given = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    return {name: _FORMS.of(hints[name]).write(default) for name, default in given.items()}


# What the JSON looks like.

_FIELD = re.compile(r"    (\w+): [^#]+?(?:  #:? (.*))?")
_BEFORE = "    #: "
_KINDS: Mapping[Hint, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}
_DEFINED_BY: Mapping[type, type] = {ByteFigures: Volume}
"""Where another dataclass has the definitions of fields that have none."""


def json_schema(kind: type) -> Json:
    """The JSON Schema (draft 2020-12) of what `to_json` makes of a dataclass."""
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": kind.__name__}
    return {**title, **_object(kind)}


def _schema(hint: Hint) -> Json:
    hint = getattr(hint, "__supertype__", hint)  # what a NewType is made of
    origin: Hint = get_origin(hint)
    args = get_args(hint)
    if hint in _KINDS:
        return {"type": _KINDS[hint]}
    if NoneType in args:
        (some,) = (arg for arg in args if arg is not NoneType)
        return {"anyOf": [_schema(some), {"type": "null"}]}
    if origin is tuple and args[-1] is Ellipsis:
        return {"type": "array", "items": _schema(args[0])}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _schema(args[1])}
    if is_dataclass(hint):
        return _object(hint)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    raise TypeError(f"there is no schema for {hint}")


def _object(kind: type) -> Json:
    hints, defined = get_type_hints(kind), definitions(kind)
    names = [each.name for each in fields(kind)]
    properties = {name: {"description": defined[name], **_schema(hints[name])} for name in names}
    return {
        "type": "object",
        "description": _first_line(kind),
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }


@cache
def definitions(kind: type) -> Mapping[str, str]:
    """What each field of a dataclass means: the comment behind it, or what its class says of all."""
    found = dict(definitions(_DEFINED_BY[kind])) if kind in _DEFINED_BY else {}
    for base in reversed(kind.__mro__):
        if is_dataclass(base):
            found |= _comments(base)
    hints = get_type_hints(kind)
    for each in fields(kind):
        inner = _inner(hints[each.name])
        found.setdefault(each.name, _first_line(kind if inner is None else inner))
    return found


def _comments(kind: type) -> dict[str, str]:
    """The comments behind the fields of a dataclass in its source, or before them if marked with `#:`."""
    found: dict[str, str] = {}
    before: list[str] = []
    for line in inspect.getsource(kind).splitlines():
        if line.startswith(_BEFORE):
            before.append(line.removeprefix(_BEFORE))
        elif field := _FIELD.fullmatch(line):
            if text := field[2] or " ".join(before):
                found[field[1]] = text
            before = []
    return found


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or kind.__name__).splitlines()[0]


def _inner(hint: Hint) -> type | None:
    """The dataclass that stands in a field, alone, or many times, or as the value of a mapping."""
    if is_dataclass(hint):
        return hint  # type: ignore[return-value]
    return next((found for arg in get_args(hint) if (found := _inner(arg)) is not None), None)


def listed(kind: type, path: str = "") -> Iterator[tuple[str, str]]:
    """All that the JSON of a dataclass has: the path of each value, and its definition."""
    hints, defined = get_type_hints(kind), definitions(kind)
    for each in fields(kind):
        here = f"{path}{each.name}"
        yield here, defined[each.name]
        if (inner := _inner(hints[each.name])) is not None:
            yield from listed(inner, f"{here}{_step(hints[each.name])}.")


def _step(hint: Hint) -> str:
    """How one leads from a field to what it holds: by nothing, any number, or any name."""
    for each in (hint, *get_args(hint)):
        if get_origin(each) is tuple:
            return "[]"
        if get_origin(each) is Mapping:
            return ".*"
    return ""
