"""Kernels in two forms: a function in numpy, and beside it the loop that replaces it once it is compiled.

A file of kernels reads like this, and whoever uses it names the module, so that it finds the present form:

    def total(values: Int64s) -> int:                | from snapline.kernels import totals
        return int(values.sum())                     |
                                                     | totals.total(values)
    @loop_of(total, "const int64[:]")                |
    def _total(values: Int64s) -> int:               |
        found = 0                                    |
        for value in values: ...                     |

Both forms give the same results, bit for bit; the tests run both, and the loop uncompiled, too. To import
this costs nothing: numba is imported by `load`, which takes most of a second. What was compiled is kept on
disk, beside the source or in the user's cache, so that only the first process on a machine compiles. A loop
may call helpers of its own file alone (`helper`): what is kept is made anew when that file has changed, and
knows of no other.
"""

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias, TypeVar

import numpy as np

from snapline.errors import UsageError

Mode: TypeAlias = Literal["auto", "compiled", "numpy"]
_MODES: Final[tuple[Mode, ...]] = ("auto", "compiled", "numpy")
VARIABLE: Final = "SNAPLINE_KERNELS"
"""The environment variable that chooses: `auto` (slots load compiled kernels, if there is numba),
`compiled` (simulations do, too, and slots from their start on), or `numpy` (none does)."""

MODULES: Final[tuple[str, ...]] = (
    "ages",
    "chains",
    "generating",
    "grouping",
    "routing",
    "table",
    "windows",
)
"""The modules with kernels, in this package."""

Loop = TypeVar("Loop", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Kernel:
    """One function in two forms; or a helper of loops, which has but one, and takes what it is given."""

    numpy: Callable[..., Any]
    loop: Callable[..., Any]
    takes: tuple[str, ...]

    def compiled(self) -> Any:
        """The loop, compiled now or by an earlier process."""
        numba: Any = import_module("numba")
        if not self.takes:
            return numba.njit(self.loop, nogil=True)
        types = tuple(_type_of(numba, word) for word in self.takes)
        return numba.njit(types, cache=True, nogil=True)(self.loop)

    def install(self, function: Any) -> None:
        """Put a function into the place where the one in numpy stood at first."""
        setattr(sys.modules[self.numpy.__module__], self.numpy.__name__, function)


KERNELS: Final[list[Kernel]] = []
"""All that the modules imported so far have declared, in that order."""

_lock: Final = threading.Lock()
_loaded = False


def loop_of(form: Callable[..., Any], *takes: str) -> Callable[[Loop], Loop]:
    """Declare the loop that does what a function in numpy does.

    `takes` are the types of the arguments: `int64`, `int64[:]` for an array that is written to, and
    `const int64[:]` for one that is only read. Arrays are contiguous.
    """

    def declare(loop: Loop) -> Loop:
        KERNELS.append(Kernel(form, loop, takes))
        return loop

    return declare


def helper(function: Loop) -> Loop:
    """Declare a function that the loops of its file call."""
    KERNELS.append(Kernel(function, function, ()))
    return function


def mode() -> Mode:
    """What the environment asks for. Raises UsageError."""
    said = os.environ.get(VARIABLE, "auto")
    for known in _MODES:
        if said == known:
            return known
    raise UsageError(f"{VARIABLE} is one of {', '.join(_MODES)}, not {said!r}")


def load() -> bool:
    """Replace the functions in numpy by compiled loops, unless there is no numba, or no wish for it.

    Returns whether they are replaced.
    """
    global _loaded
    chosen = mode()
    if chosen == "numpy" or (chosen == "auto" and find_spec("numba") is None):
        return False
    with _lock:
        if not _loaded:
            for module in MODULES:
                import_module(f"{__package__}.{module}")
            for kernel in KERNELS:
                kernel.install(kernel.compiled())
            # The first call of all takes some 60 ms, for which no record should have to wait.
            import_module(f"{__package__}.routing").mixed(np.zeros(1, np.uint64))
            _loaded = True
    return True


def loaded() -> bool:
    """Whether the functions in numpy are replaced in this process."""
    return _loaded


def unload() -> None:
    """Put the functions in numpy back."""
    global _loaded
    with _lock:
        for kernel in KERNELS:
            kernel.install(kernel.numpy)
        _loaded = False


def _type_of(numba: Any, word: str) -> Any:
    name = word.removeprefix("const ")
    item, is_array, _ = name.partition("[:]")
    scalar = getattr(numba.types, item)
    return numba.types.Array(scalar, 1, "C", readonly=name != word) if is_array else scalar
