"""The text form of a journal: a header line, then one JSON object per entry.

How a value is written follows from the declared type of the field that holds it, so the classes of
`core` and `journal.entry` are the only description of the format. A dataclass is an object with its
class name as `type`; bytes are base64; a batch is left out but for its size. Everything keeps its order
and every line is ASCII, so equal journals have equal lines, and equal digests.

A process that is killed may leave half a line at the end of its journal: reading ignores it. Anything
else that cannot be read is damage.
"""

import hashlib
import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from operator import index
from types import NoneType, UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from snapline.batch import Batch
from snapline.core import effects, events, messages
from snapline.errors import ObjectDamaged, UsageError
from snapline.journal import entry
from snapline.journal.entry import Entry

VERSION = 2

Json: TypeAlias = Any  # what json writes and reads
Value: TypeAlias = Any  # of the type that a field declares
Hint: TypeAlias = Any  # a declared type; the typing module has no common name for them


class LeftOut(Batch):
    """A batch of which only the size was written down."""

    __slots__ = ("_nbytes",)

    def __init__(self, records: int, nbytes: int) -> None:
        super().__init__({}, records)
        self._nbytes = nbytes

    @property
    def nbytes(self) -> int:
        """The size that the column buffers had."""
        return self._nbytes


def lines(entries: Iterable[Entry]) -> Iterator[str]:
    """The lines of a journal, each with its newline; the first is the header."""
    yield _line({"journal": VERSION})
    for each in entries:
        yield _line(_write_object(each))


def digest(entries: Iterable[Entry]) -> str:
    """One number for a whole journal: the SHA-256 of its lines."""
    hasher = hashlib.sha256()
    for line in lines(entries):
        hasher.update(line.encode())
    return hasher.hexdigest()


def read(lines: Iterable[str]) -> Iterator[Entry]:
    """The entries behind the lines of a journal; their messages have a batch without columns."""
    numbered = enumerate(_whole(lines), start=1)
    for _, line in numbered:
        _check_header(line)
        break
    for number, line in numbered:
        yield _entry(number, line)


def _line(value: Json) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _whole(lines: Iterable[str]) -> Iterator[str]:
    """All lines but a last one that was cut: it has no newline and does not close its object."""
    held: str | None = None
    for line in lines:
        if held is not None:
            yield held
        held = line
    if held is not None and (held.endswith("\n") or _parses(held)):
        yield held


def _parses(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _check_header(line: str) -> None:
    header = json.loads(line) if _parses(line) else None
    if not isinstance(header, dict) or "journal" not in header:
        raise UsageError("this is not a journal: its first line names no version")
    if header["journal"] != VERSION:
        raise UsageError(
            f"the journal has version {header['journal']}, and this Snapline reads {VERSION}"
        )


def _entry(number: int, line: str) -> Entry:
    try:
        back: Entry = _read_object(json.loads(line))
    except (ValueError, TypeError, KeyError) as error:
        raise ObjectDamaged(f"line {number} of the journal is damaged: {error!r}") from error
    return back


# One form per type: how a value becomes what JSON knows, and back.


@dataclass(frozen=True, slots=True)
class _Form:
    write: Callable[[Value], Json]
    read: Callable[[Json], Value]


_CLASSES: Mapping[str, type] = {
    name: value
    for module in (messages, events, effects, entry)
    for name, value in vars(module).items()
    if isinstance(value, type) and is_dataclass(value)
}


def _write_object(value: Value) -> dict[str, Json]:
    written: dict[str, Json] = {"type": type(value).__name__}
    for name, form in _fields(value.__class__):
        written[name] = form.write(getattr(value, name))
    return written


def _read_object(written: dict[str, Json]) -> Value:
    kind = _CLASSES[written["type"]]
    return kind(**{name: form.read(written[name]) for name, form in _fields(kind)})


@cache
def _fields(kind: type) -> tuple[tuple[str, _Form], ...]:
    return tuple((name, _form(hint)) for name, hint in get_type_hints(kind).items())


def _same(value: Value) -> Value:
    return value


def _write_batch(batch: Batch) -> dict[str, int]:
    return {"records": len(batch), "bytes": batch.nbytes}


def _write_free(value: Value) -> Json:
    """Where any value may stand, only those may that come back equal.

    A mapping with the key `type` would come back as an object.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [_write_free(each) for each in value]
    if type(value).__name__ in _CLASSES:
        return _write_object(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) and key != "type" for key in value):
        return {key: _write_free(each) for key, each in value.items()}
    raise TypeError(f"a journal cannot hold {value!r}: use numbers, strings, tuples, mappings")


def _read_free(value: Json) -> Value:
    if isinstance(value, list):
        return tuple(_read_free(each) for each in value)
    if isinstance(value, dict):
        if "type" in value:
            return _read_object(value)
        return {key: _read_free(each) for key, each in value.items()}
    return value


_OBJECT = _Form(_write_object, _read_object)
_FORMS: Mapping[Hint, _Form] = {
    str: _Form(_same, _same),
    bool: _Form(_same, _same),
    int: _Form(index, index),  # a numpy integer becomes an ordinary one
    bytes: _Form(lambda value: b2a_base64(value, newline=False).decode(), a2b_base64),
    Batch: _Form(_write_batch, lambda size: LeftOut(size["records"], size["bytes"])),
    Any: _Form(_write_free, _read_free),
}


def _form(hint: Hint) -> _Form:
    hint = getattr(hint, "__supertype__", hint)  # what a NewType is made of
    if hint in _FORMS:
        return _FORMS[hint]
    origin: Hint = get_origin(hint)
    args = get_args(hint)
    if origin is UnionType:
        return _union(args)
    if origin is tuple:
        return _tuple(args)
    if origin is Mapping:
        return _mapping(*args)
    if is_dataclass(hint):
        return _OBJECT
    assert issubclass(hint, Enum), f"no form for {hint}"
    return _Form(lambda value: value.value, hint)


def _union(args: tuple[Hint, ...]) -> _Form:
    """Alternatives are classes, which name themselves, or tuples of such; and perhaps None."""
    some = [arg for arg in args if arg is not NoneType]
    assert len(some) == 1 or all(is_dataclass(a) or get_origin(a) is tuple for a in some), args
    form = _form(some[0])
    if len(some) == len(args):
        return form
    return _Form(
        lambda value: None if value is None else form.write(value),
        lambda value: None if value is None else form.read(value),
    )


def _tuple(args: tuple[Hint, ...]) -> _Form:
    if args[-1] is Ellipsis:
        each = _form(args[0])
        return _Form(lambda v: [each.write(x) for x in v], lambda v: tuple(map(each.read, v)))
    forms = [_form(arg) for arg in args]
    return _Form(
        lambda value: [form.write(x) for form, x in zip(forms, value, strict=True)],
        lambda value: tuple(form.read(x) for form, x in zip(forms, value, strict=True)),
    )


def _mapping(key: Hint, value: Hint) -> _Form:
    """Keys are strings or integers; JSON knows only strings, so an integer is turned back."""
    form = _form(value)
    read_key: Callable[[str], Any] = int if key is int else _same
    return _Form(
        lambda mapping: {str(k): form.write(v) for k, v in mapping.items()},
        lambda mapping: {read_key(k): form.read(v) for k, v in mapping.items()},
    )
