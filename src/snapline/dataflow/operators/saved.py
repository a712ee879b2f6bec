"""The state of an operator that names the attributes which hold it: `saved = ("xtx", "n")`.

An attribute may be a bool, an int, a float, a string, a numpy array or a number of numpy's, or a dict of
those. It comes back exactly as it was: with its type, and an array with its dtype, shape and order in
memory. Anything else is refused, and the message names the attribute.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from snapline.batch import Array, Batch, Varlen

SAVED: Final = "saved"
"""The part of a capture that holds the attributes."""

_KINDS: Final = frozenset("biufcmMSU")  # of numpy: no objects, no structures
_FLOAT_BYTES_MAX: Final = 8  # wider ones are not the same on every machine
_ALLOWED: Final = "a bool, an int, a float, a string, an array of numpy's, or a flat dict of those"


class _Row(NamedTuple):
    """One value as it is stored."""

    attribute: str
    key: str  # which entry of a dict it is, as JSON; empty: the attribute itself
    form: str  # what it is, as JSON: its kind and what else is needed to make it again
    value: Array  # its bytes


def check_saved(kind: type, names: Any) -> None:
    """Raise TypeError unless these are names of attributes that such an operator can have saved."""
    listed = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
    if not listed or len(set(names)) < len(names):
        raise TypeError(
            f'saved is a tuple of different names, such as saved = ("total", "n"), not {names!r:.60}'
        )
    own = [each for each in ("capture", "restore") if names and _overrides(kind, each)]
    if own:
        raise TypeError(f"it has saved and its own {own[0]}(): leave one of the two out")


def _overrides(kind: type, method: str) -> bool:
    base = next(each for each in reversed(kind.__mro__) if method in vars(each))
    return getattr(kind, method) is not getattr(base, method)


def captured(operator: object, names: Sequence[str]) -> dict[str, Batch]:
    """The attributes as a part of a capture. Raises TypeError if one holds what cannot be saved."""
    if not names:
        return {}
    rows = [row for name in names for row in _rows(operator, name)]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row.value) for row in rows], out=offsets[1:])
    texts = {
        field: Varlen.of("str", [getattr(row, field) for row in rows])
        for field in ("attribute", "key", "form")
    }
    values = Varlen("bytes", offsets, np.concatenate([row.value for row in rows]))
    return {SAVED: Batch({**texts, "value": values}, len(rows))}


def give_back(operator: object, parts: Mapping[str, Batch]) -> None:
    """Set the attributes to what was captured."""
    for attribute, key, form, raw in (
        parts[SAVED].select("attribute", "key", "form", "value").rows()
    ):
        value = _made(json.loads(form), raw)
        if key:
            getattr(operator, attribute)[json.loads(key)] = value
        else:
            setattr(operator, attribute, value)


def _rows(operator: object, name: str) -> Iterator[_Row]:
    try:
        value = getattr(operator, name)
    except AttributeError:
        raise TypeError(
            f"saved names '{name}', which it does not have: set it in __init__"
        ) from None
    if type(value) is not dict:
        yield _Row(name, "", *_stored(name, value))
        return
    yield _Row(name, "", json.dumps({"kind": "dict"}), np.zeros(0, np.uint8))
    for key, each in value.items():
        if type(key) not in (str, int):
            raise TypeError(
                f"'{name}' has the key {key!r:.60}: it can be saved with texts and ints"
            )
        yield _Row(name, json.dumps(key), *_stored(f"{name}[{key!r:.60}]", each))


def _stored(name: str, value: Any) -> tuple[str, Array]:
    """The form and the bytes of a value."""
    kind, raw, more = type(value), b"", {}
    if kind is bool or kind is int:
        raw = str(int(value)).encode()  # of any size
    elif kind is float:
        raw = struct.pack("<d", value)
    elif kind is str:
        raw = value.encode("utf-8", "surrogatepass")
    elif (kind is np.ndarray or isinstance(value, np.generic)) and _is_known(value.dtype):
        fortran = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        order: Any = "F" if fortran else "C"
        form = {"kind": "array" if kind is np.ndarray else "number", "dtype": value.dtype.str}
        more = {**form, "shape": list(value.shape), "order": order}
        raw = value.tobytes(order)
    else:
        what = (
            f"an array of {value.dtype}" if kind is np.ndarray else f"{kind.__name__} {value!r:.60}"
        )
        raise TypeError(f"'{name}' is {what}, which cannot be saved: it has to be {_ALLOWED}")
    return json.dumps({"kind": kind.__name__, **more}), np.frombuffer(raw, np.uint8)


def _is_known(dtype: np.dtype[Any]) -> bool:
    wide = {"f": _FLOAT_BYTES_MAX, "c": 2 * _FLOAT_BYTES_MAX}.get(dtype.kind)
    return dtype.kind in _KINDS and (wide is None or dtype.itemsize <= wide)


def _made(form: Mapping[str, Any], raw: bytes) -> Any:
    """The value of this form with these bytes."""
    match form["kind"]:
        case "dict":
            return {}
        case "bool":
            return bool(int(raw))
        case "int":
            return int(raw)
        case "float":
            return struct.unpack("<d", raw)[0]
        case "str":
            return raw.decode("utf-8", "surrogatepass")
    array: Array = np.ndarray(
        tuple(form["shape"]), np.dtype(form["dtype"]), bytearray(raw), order=form["order"]
    )
    return array if form["kind"] == "array" else array[()]
