"""Forms: how a value becomes what JSON knows, and how it is read back with suspicion.

A form is derived from declared types, so a dataclass is the only description of how its values are written
on a connection, in a journal or in a ledger: a new field needs no second place. Writing trusts the type
checker. Reading trusts nothing: a field that is missing, unknown or of another type raises ValueError, and
a class that the text names is looked up only among the classes that may stand in that place.

| declared type | what is written |
|---|---|
| `int`, `bool`, `str`, and types made of them (`TaskId`, `Seq`) | the value |
| a member of an `Enum` | its value |
| `T | None` | null, or a T |
| `tuple[T, ...]`, `tuple[A, B]` | a list |
| `Mapping[K, T]` with texts or whole numbers for keys | an object |
| a dataclass | an object with its fields |
| several dataclasses, or a family of them | the same, and the name of the class as `type` |
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from operator import index
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, get_args, get_origin, get_type_hints

Json: TypeAlias = Any  # what json writes and reads
Value: TypeAlias = Any  # of the type that a form is for
Hint: TypeAlias = Any  # a declared type; the typing module has no common name for them

TYPE: Final = "type"
"""Where the name of a class stands among its fields, if several classes may stand in a place."""


@dataclass(frozen=True, slots=True)
class Form:
    """How values of one type are written and read."""

    write: Callable[[Value], Json]
    read: Callable[[Json], Value]


def _scalar(kind: type, write: Callable[[Value], Json]) -> Form:
    def read(value: Json) -> Value:
        if type(value) is not kind:  # isinstance would take True for 1
            raise ValueError(f"{value!r:.50} where a {kind.__name__} should be")
        return value

    return Form(write, read)


# The function `index` turns an integer of numpy into an ordinary one.
_SCALARS: Final = {int: _scalar(int, index), bool: _scalar(bool, bool), str: _scalar(str, str)}


def _read_float(value: Json) -> float:
    if type(value) not in (float, int):  # JSON has one kind of numbers
        raise ValueError(f"{value!r:.50} where a number should be")
    return float(value)


NUMBER: Final = Form(float, _read_float)
"""The form of a `float`, to be named among the leaves; what protocols say has no such field."""


class Forms:
    """Derives forms, and keeps those that it has derived.

    `leaves` has the forms of further types. `families` says, for a base class that may stand in a field,
    which of the classes derived from it are read; all of them can be written.
    """

    def __init__(
        self,
        leaves: Mapping[Hint, Form] | None = None,
        families: Mapping[type, Iterable[type]] | None = None,
    ) -> None:
        self._made: dict[Hint, Form] = {**_SCALARS, **(leaves or {})}
        self._records: dict[type, Form] = {}
        for base, kinds in (families or {}).items():
            self._made[base] = self.tagged(kinds)

    def of(self, hint: Hint) -> Form:
        """The form of a declared type. Raises TypeError if there is none."""
        hint = getattr(hint, "__supertype__", hint)  # what a NewType is made of
        if hint not in self._made:
            self._made[hint] = self._make(hint)
        return self._made[hint]

    def _make(self, hint: Hint) -> Form:
        origin: Hint = get_origin(hint)
        args = get_args(hint)
        if origin is UnionType:
            return self._union(args)
        if origin is tuple and args:
            return self._tuple(args)
        if origin is Mapping:
            return self._mapping(*args)
        if isinstance(hint, type) and is_dataclass(hint):
            return self.record(hint)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return Form(lambda member: member.value, hint)
        raise TypeError(f"there is no form for {getattr(hint, '__name__', hint)}")

    def record(self, kind: type) -> Form:
        """The form of a dataclass: an object with its fields."""
        if kind not in self._records:
            self._records[kind] = self._record(kind)
        return self._records[kind]

    def _record(self, kind: type) -> Form:
        hints = get_type_hints(kind)
        names = [field.name for field in dataclasses.fields(kind)]
        forms = {name: self.of(hints[name]) for name in names}
        if TYPE in forms:
            raise TypeError(f"{kind.__name__} has a field {TYPE!r}: that is where its name stands")

        def write(value: Value) -> Json:
            return {name: form.write(getattr(value, name)) for name, form in forms.items()}

        def read(written: Json) -> Value:
            if _of(dict, written).keys() != forms.keys():
                raise ValueError(f"{kind.__name__} with the fields {list(written)!r:.100}")
            return kind(**{name: form.read(written[name]) for name, form in forms.items()})

        return Form(write, read)

    def tagged(self, kinds: Iterable[type]) -> Form:
        """The form of one of several dataclasses: its name as `type`, and its fields."""
        by_name = {kind.__name__: self.record(kind) for kind in kinds}

        def write(value: Value) -> Json:
            kind = type(value)
            return {TYPE: kind.__name__, **self.record(kind).write(value)}

        def read(written: Json) -> Value:
            fields = dict(_of(dict, written))
            name = fields.pop(TYPE, None)
            if not isinstance(name, str) or name not in by_name:
                raise ValueError(f"nothing that may stand here is called {name!r:.50}")
            return by_name[name].read(fields)

        return Form(write, read)

    def _union(self, args: tuple[Hint, ...]) -> Form:
        """The form of alternatives: None or one type, several classes, or several tuples of classes."""
        some = tuple(arg for arg in args if arg is not NoneType)
        if len(some) > 1 and all(get_origin(arg) is tuple for arg in some):
            each = {kind: None for arg in some for kind in get_args(get_args(arg)[0])}
            form = _sequence(self.tagged(each))
        elif len(some) > 1:
            form = self.tagged(some)
        else:
            form = self.of(some[0])
        return form if len(some) == len(args) else _optional(form)

    def _tuple(self, args: tuple[Hint, ...]) -> Form:
        if args[-1] is Ellipsis:
            return _sequence(self.of(args[0]))
        forms = [self.of(arg) for arg in args]
        return Form(
            lambda values: [form.write(x) for form, x in zip(forms, values, strict=True)],
            lambda values: tuple(
                form.read(x) for form, x in zip(forms, _of(list, values), strict=True)
            ),
        )

    def _mapping(self, key: Hint, value: Hint) -> Form:
        """The form of a mapping. JSON has only texts for keys, so an integer is turned back."""
        keys, form = getattr(key, "__supertype__", key), self.of(value)
        if keys not in (int, str):
            raise TypeError(f"there is no form for {key.__name__} as a key: use texts or integers")
        write_key, read_key = (_write_number, _read_number) if keys is int else (str, str)
        return Form(
            lambda mapping: {write_key(k): form.write(v) for k, v in mapping.items()},
            lambda mapping: {read_key(k): form.read(v) for k, v in _of(dict, mapping).items()},
        )


def _optional(form: Form) -> Form:
    return Form(
        lambda value: None if value is None else form.write(value),
        lambda value: None if value is None else form.read(value),
    )


def _sequence(form: Form) -> Form:
    return Form(
        lambda values: [form.write(value) for value in values],
        lambda values: tuple(form.read(value) for value in _of(list, values)),
    )


def _write_number(number: Value) -> str:
    return str(index(number))


def _read_number(text: str) -> int:
    if str(number := int(text)) != text:
        raise ValueError(f"{text!r:.50} where a number should be")
    return number


def _of(kind: type, value: Json) -> Json:
    if type(value) is not kind:
        raise ValueError(f"{value!r:.50} where a {kind.__name__} should be")
    return value
