"""Declared forms: how a value becomes what JSON knows, and how it is read back with suspicion.

A form is put together from smaller ones, field by field. Writing trusts the type checker. Reading trusts
nothing: a field that is missing, unknown or of another type raises ValueError, and no name in the text is
ever looked up anywhere but in the table of the form that is being read.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import index
from typing import Any, Final, TypeAlias

Json: TypeAlias = Any  # what json writes and reads
Value: TypeAlias = Any  # of the type that a form is for


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


INT: Final = _scalar(int, index)  # a numpy integer becomes an ordinary one
FLAG: Final = _scalar(bool, bool)
TEXT: Final = _scalar(str, str)


def optional(form: Form) -> Form:
    """A value, or None."""
    return Form(
        lambda value: None if value is None else form.write(value),
        lambda value: None if value is None else form.read(value),
    )


def sequence(form: Form) -> Form:
    """A tuple of any length."""
    return Form(
        lambda values: [form.write(value) for value in values],
        lambda values: tuple(form.read(value) for value in _of(list, values)),
    )


def pair(first: Form, second: Form) -> Form:
    """A tuple of two."""

    def read(values: Json) -> Value:
        a, b = _of(list, values)
        return first.read(a), second.read(b)

    return Form(lambda values: [first.write(values[0]), second.write(values[1])], read)


def by_text(form: Form) -> Form:
    """A mapping from strings."""
    return Form(
        lambda mapping: {str(key): form.write(value) for key, value in mapping.items()},
        lambda mapping: {key: form.read(value) for key, value in _of(dict, mapping).items()},
    )


def by_number(form: Form) -> Form:
    """A mapping from integers; JSON has only strings for keys."""

    def read_key(text: str) -> int:
        if str(number := int(text)) != text:
            raise ValueError(f"{text!r:.50} where a number should be")
        return number

    return Form(
        lambda mapping: {str(index(key)): form.write(value) for key, value in mapping.items()},
        lambda mapping: {
            read_key(key): form.read(value) for key, value in _of(dict, mapping).items()
        },
    )


def choice(kind: type[Enum]) -> Form:
    """A member of an enumeration, by its value."""
    return Form(lambda member: member.value, kind)


@dataclass(frozen=True, slots=True)
class RecordForm(Form):
    """A dataclass, field by field."""

    kind: type


def record(kind: type, /, **forms: Form) -> RecordForm:
    """The form of a dataclass. Every field of it is declared, or nothing starts."""
    declared = [field.name for field in dataclasses.fields(kind)]
    if sorted(declared) != sorted(forms):
        raise TypeError(f"{kind.__name__} has the fields {declared}, its form has {list(forms)}")

    def write(value: Value) -> Json:
        return {name: form.write(getattr(value, name)) for name, form in forms.items()}

    def read(written: Json) -> Value:
        if _of(dict, written).keys() != forms.keys():
            raise ValueError(f"{kind.__name__} with the fields {list(written)!r:.100}")
        return kind(**{name: form.read(written[name]) for name, form in forms.items()})

    return RecordForm(write, read, kind)


def tagged(*records: RecordForm) -> Form:
    """One of several dataclasses: its name, then its fields."""
    by_name: Mapping[str, RecordForm] = {each.kind.__name__: each for each in records}

    def write(value: Value) -> Json:
        name = type(value).__name__
        return [name, by_name[name].write(value)]

    def read(written: Json) -> Value:
        name, fields = _of(list, written)
        if TEXT.read(name) not in by_name:
            raise ValueError(f"nobody is called {name!r:.50}")
        return by_name[name].read(fields)

    return Form(write, read)


def _of(kind: type, value: Json) -> Json:
    if type(value) is not kind:
        raise ValueError(f"{value!r:.50} where a {kind.__name__} should be")
    return value
