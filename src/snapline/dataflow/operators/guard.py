"""Guards calls of operators: an error in one names the operator and the line of the user's code.

An operator is mostly a user's own code. Without this, nobody would know which operator an exception came
from, and what it returns by mistake would be found much later, in the middle of the engine. Nothing is done
per record.
"""

import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, TracebackType
from typing import Any, Final, TypeVar

import numpy as np

from snapline.batch import Batch, Varlen, Words
from snapline.dataflow.operators.operator import Capture, Operator, Outputs
from snapline.dataflow.state.missed_rows import MissedRows
from snapline.errors import OperatorFailed
from snapline.ids import Millis
from snapline.wording import plural

_T = TypeVar("_T")

_OURS: Final = ("snapline", "numpy")  # packages whose lines tell the user nothing
_INSTALLED: Final = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_LET_THROUGH: Final = (OperatorFailed, KeyboardInterrupt)  # a member of a chain is named already
_KNOWN_KINDS: Final = frozenset("biufmMSU")  # of numpy: no objects, complex numbers, structures
_FLOAT_BYTES_MAX: Final = 8  # wider ones are not the same on every machine


class Guard:
    """An operator with its name; its methods are called through this.

    Whatever an operator raises is a failed call, SystemExit and the like, too: code of a dataflow must not
    end the process. Only KeyboardInterrupt is let through, for it comes from whoever wants the end.
    """

    __slots__ = ("foreign", "name", "operator")

    def __init__(self, name: str, operator: Operator) -> None:
        self.name = name
        self.operator = operator
        #: only what others' operators return is checked: ours are right, or check it themselves
        self.foreign = _package(type(operator)) != "snapline"

    def process(self, port: str, batch: Batch) -> Outputs:
        """Have the operator process a batch, and check what it returns; raises OperatorFailed."""
        try:
            outputs = self.operator.process(port, batch)
            return checked(outputs, "process") if self.foreign else outputs
        except _LET_THROUGH:
            raise
        except BaseException as error:
            raise blame(self.name, error, self.operator, "process") from error

    def on_watermark(self, time: Millis) -> Outputs:
        """Tell the operator the watermark, and check what it returns; raises OperatorFailed."""
        try:
            outputs = self.operator.on_watermark(time)
            return checked(outputs, "on_watermark") if self.foreign else outputs
        except _LET_THROUGH:
            raise
        except BaseException as error:
            raise blame(self.name, error, self.operator, "on_watermark") from error

    def capture(self, *, full: bool) -> Capture:
        """Have the operator captured, and check what it returns; raises OperatorFailed."""
        return self._call(
            "capture", lambda: _checked_capture(self.operator.capture(full=full), full)
        )

    def restore(self, captures: Sequence[Capture]) -> None:
        """Have the operator restored; raises OperatorFailed."""
        self._call("restore", lambda: self.operator.restore(captures))

    def expire(self, time: Millis) -> int:
        """Have the operator forget the windows that have ended; raises OperatorFailed."""
        return self._call("expire", lambda: _checked_count(self.operator.expire(time)))

    def mark_stale(self, time: Millis) -> Outputs:
        """Have the operator put out the windows that have ended as tentative; raises OperatorFailed."""
        return self._call(
            "mark_stale", lambda: checked(self.operator.mark_stale(time), "mark_stale")
        )

    def forget_stale(self, port: str, missed: MissedRows) -> int:
        """Have the operator forget the rows that are stale; raises OperatorFailed."""
        return self._call("forget_stale", lambda: self.operator.forget_stale(port, missed))

    def _call(self, method: str, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except _LET_THROUGH:
            raise
        except BaseException as error:
            raise blame(self.name, error, self.operator, method) from error


# Checks of what an operator returns.


def checked(outputs: Outputs, method: str) -> Outputs:
    """Return the outputs; TypeError unless they are pairs of a name and a batch that is in order."""
    if type(outputs) is not tuple and type(outputs) is not list:
        outputs = _listed(outputs, method)
    for output in outputs:
        if type(output) is not tuple or len(output) != 2 or type(output[0]) is not str:
            raise TypeError(
                f"{method} returned {_short(output)} among its outputs: each must be a pair of an "
                "output's name and a Batch, such as ('out', batch)"
            )
        check_batch(output[1], f"{method} returned")
    return outputs


def _listed(outputs: Any, method: str) -> Outputs:
    """The outputs as a tuple. A generator is run to its end here, so that its errors name the operator."""
    if outputs is None or isinstance(outputs, str | Batch) or not hasattr(outputs, "__iter__"):
        raise TypeError(
            f"{method} returned {_short(outputs)}: it must return pairs of an output's name and a "
            "Batch, such as [('out', batch)], or []"
        )
    return tuple(outputs)


def check_batch(batch: object, who: str) -> None:
    """Raise TypeError unless this is a batch with columns of known kinds, all of its length."""
    if not isinstance(batch, Batch):
        raise TypeError(f"{who} {_short(batch)} where a Batch should be")
    length, shape = batch.length, (batch.length,)
    for name, column in batch.columns.items():
        if type(name) is not str or not (name.isascii() or _encodable(name)):
            raise TypeError(f"{who} a Batch with a column called {name!r:.60}: a name is a text")
        if isinstance(column, np.ndarray):
            right = column.shape == shape and _is_known(column.dtype)
        else:
            right = isinstance(column, Words | Varlen) and len(column) == length
        if not right:
            raise TypeError(f"{who} a Batch of {plural(length, 'record')} {_wrong(name, column)}")


def _is_known(dtype: np.dtype[Any]) -> bool:
    """Whether columns of this type can be sent and stored."""
    return dtype.kind in _KNOWN_KINDS and not (
        dtype.kind == "f" and dtype.itemsize > _FLOAT_BYTES_MAX
    )


def _encodable(name: str) -> bool:
    """Whether a text can be written: one with half of a surrogate pair cannot."""
    return not any("\ud800" <= sign <= "\udfff" for sign in name)


def _wrong(name: str, column: object) -> str:
    if not isinstance(column, np.ndarray | Words | Varlen):
        return (
            f"whose column '{name}' is {_short(column)}, not a column: Batch.of(...) makes columns"
        )
    if isinstance(column, np.ndarray) and column.ndim != 1:
        return f"whose column '{name}' has {column.ndim} dimensions, not one"
    if isinstance(column, np.ndarray) and not _is_known(column.dtype):
        return (
            f"whose column '{name}' holds {column.dtype} values: it must be all numbers, all bools, all "
            "strings, all bytes or all lists of ints, and without None"
        )
    return f"whose column '{name}' has {plural(len(column), 'value')}"


def _checked_capture(capture: object, full: bool) -> Capture:
    if not isinstance(capture, Capture):
        raise TypeError(f"capture returned {_short(capture)} where a Capture should be")
    if full and not capture.full:
        raise TypeError("capture returned a delta, and was asked for a full capture (full=True)")
    if not isinstance(capture.parts, Mapping):
        raise TypeError(f"capture returned {_short(capture.parts)} where a dict of parts should be")
    for name, part in capture.parts.items():
        if not isinstance(name, str):
            raise TypeError(f"capture returned a part whose name is {_short(name)}, not a text")
        check_batch(part, f"capture returned, as its part '{name}',")
    return capture


def _checked_count(count: object) -> int:
    if not isinstance(count, int) or count < 0:
        raise TypeError(f"expire returned {_short(count)} where a number of windows should be")
    return count


def _short(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.60}"


# Which line of code is to blame.


def blame(
    operator: str, error: BaseException, culprit: object = None, method: str = "", where: str = ""
) -> OperatorFailed:
    """Make the OperatorFailed for an exception that an operator's code has raised."""
    code = _line_of(error.__traceback__) or _definition_of(culprit, method)
    return OperatorFailed(operator, type(error).__name__, text_of(error), code, where)


def text_of(error: BaseException) -> str:
    """The text of an exception; its own `__str__` may fail, too."""
    try:
        return str(error)
    except _LET_THROUGH:
        raise
    except BaseException:
        return "an exception that cannot be put into words"


def _line_of(tb: TracebackType | None) -> str:
    """The innermost line of the user's own code, else of a library that it called, else an empty text."""
    found = ""
    certain = False
    for frame, line in traceback.walk_tb(tb):
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _OURS:
            continue
        own = not frame.f_code.co_filename.startswith((*_INSTALLED, "<frozen"))
        if own or not certain:
            found, certain = f"{frame.f_code.co_filename}, line {line}", certain or own
    return found


def _definition_of(culprit: object, method: str) -> str:
    """Where the function begins that returned something wrong; no traceback has it, for it has returned."""
    function = getattr(culprit, "function", None) or getattr(type(culprit), method, None)
    function = getattr(function, "func", function)  # the function behind a partial
    code = getattr(function, "__code__", None)
    if _package(function) in _OURS or not isinstance(code, CodeType):
        return ""
    return f"{code.co_filename}, line {code.co_firstlineno}"


def _package(thing: object) -> str:
    return str(getattr(thing, "__module__", "")).partition(".")[0]
