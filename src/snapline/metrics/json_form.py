"""Writes frozen results as plain JSON and reads them back, by the forms of `core.forms`.

Reading is strict: a result of another version is refused, and not half understood.
"""

from typing import Any, TypeVar

from snapline.core.forms import NUMBER, Forms, Json

_T = TypeVar("_T")


_FORMS = Forms({float: NUMBER})


def to_json(value: Any) -> Json:
    """Write a dataclass, and all that is in it, as plain values."""
    return _FORMS.record(type(value)).write(value)


def from_json(kind: type[_T], written: Json) -> _T:
    """Read a dataclass from its plain values. Raises ValueError, which names what does not fit."""
    read: _T = _FORMS.record(kind).read(written)
    return read
