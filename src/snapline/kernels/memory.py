"""Memory that costs nothing until it is touched, so that no array has to be filled or moved as a whole.

The kernel of the system gives zeroed pages one by one, when they are first written to. So a large array is
there at once, and a column may reserve more room than it will ever need: to grow is then to use more of it.
"""

import mmap
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

LARGE: Final = 1 << 22
"""From so many bytes on arrays lie in memory of their own, and columns reserve room."""

_RESERVED_MAX: Final = 1 << 38  # a process has room for some hundred of them
_NO_RESERVE: Final = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux's number; Python 3.11 lacks it
_OVERCOMMIT: Final = Path("/proc/sys/vm/overcommit_memory")
_ALL_COUNTS: Final = "2"  # memory counts when it is asked for, touched or not


def zeros(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of zeros, whose pages are there when they are touched."""
    kind = np.dtype(dtype)
    whole = _mapped(count * kind.itemsize) if count * kind.itemsize >= LARGE else None
    return np.zeros(count, kind) if whole is None else np.frombuffer(whole, kind, count)


def room_for_all(dtype: npt.DTypeLike) -> npt.NDArray[Any] | None:
    """An array of zeros as large as the machine's memory; None where one cannot reserve so much."""
    kind = np.dtype(dtype)
    size = _reservation()
    whole = _mapped(size) if size and kind.itemsize and not kind.hasobject else None
    return None if whole is None else np.frombuffer(whole, kind, size // kind.itemsize)


def give_back(array: npt.NDArray[Any], start: int, stop: int) -> None:
    """Give the pages of array[start:stop] back, which nobody reads any more; not all, at once, at its end.

    Pages that lie there in part are kept, as is all that is not in memory of its own.
    """
    whole = array.base
    if isinstance(whole, memoryview):
        whole = whole.obj
    if isinstance(whole, mmap.mmap):
        first = -(-start * array.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
        size = stop * array.itemsize // mmap.PAGESIZE * mmap.PAGESIZE - first
        if size > 0:
            whole.madvise(mmap.MADV_DONTNEED, first, size)


def _mapped(size: int) -> mmap.mmap | None:
    if not hasattr(mmap, "MADV_HUGEPAGE"):  # another system than Linux
        return None
    try:
        whole = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    except (OSError, OverflowError):
        return None
    with suppress(OSError):  # a system without large pages
        whole.madvise(mmap.MADV_HUGEPAGE)
    return whole


@cache
def _reservation() -> int:
    """How many bytes a column reserves: all that it could ever fill, or 0 if what is reserved counts."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY or _OVERCOMMIT.read_text().strip() == _ALL_COUNTS:
            return 0
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ImportError, OSError, ValueError):
        return 0
    return min(memory, _RESERVED_MAX) & -mmap.PAGESIZE
