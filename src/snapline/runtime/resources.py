"""What a process uses, as it tells about once a second: CPU time, memory, requests to the store.

CPU time counts from the moment at which this is made: a process of Spark's may have done other work before.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

from snapline.metrics.second import Usage, Used
from snapline.runtime.counted_store import CountedStore, Requests

PERIOD_S = 1.0
"""How long nothing is told after something was."""

_STATUS = Path("/proc/self/status")


@runtime_checkable
class Generating(Protocol):
    """An input that is computed when it is read, and counts the CPU time of that."""

    @property
    def generated_ns(self) -> int:
        """CPU time that was spent on making records so far."""
        ...


class Resources:
    """Tells now and then what this process has used since it last did."""

    def __init__(self, store: CountedStore, log_syncs: Callable[[], int] = lambda: 0) -> None:
        self._store = store
        self._log_syncs = log_syncs
        self._told_s = time.monotonic()
        self._cpu_ns = time.process_time_ns()
        self._asked = Requests()
        self._syncs = 0
        self._generated_ns: dict[int, int] = {}  #: by input, as far as it was told

    def since(self, inputs: Iterable[object], *, last: bool = False) -> Used | None:
        """What was used since this told last; None if that was just now, unless it is the last time.

        `inputs` are what the sources of this process read at present.
        """
        now_s = time.monotonic()
        if now_s < self._told_s + PERIOD_S and not last:
            return None
        self._told_s = now_s
        before_ns, self._cpu_ns = self._cpu_ns, time.process_time_ns()
        usage = Usage(generator_us=self._generating_us(inputs), **self._requests())
        before, self._syncs = self._syncs, self._log_syncs()
        usage.log_syncs = self._syncs - before
        return Used((self._cpu_ns - before_ns) // 1000, peak_bytes(), usage)

    def _requests(self) -> dict[str, int]:
        before, self._asked = self._asked, self._store.asked
        more = (now - then for now, then in zip(self._asked, before, strict=True))
        return dict(zip(Requests._fields, more, strict=True))

    def _generating_us(self, inputs: Iterable[object]) -> int:
        spent_ns = 0
        for each in {id(each): each for each in inputs}.values():
            if isinstance(each, Generating):
                now_ns = each.generated_ns
                spent_ns += now_ns - self._generated_ns.get(id(each), 0)
                self._generated_ns[id(each)] = now_ns
        return spent_ns // 1000


def peak_bytes() -> int:
    """The most resident memory that this process has had.

    Linux tells it for the program that runs; what `getrusage` says includes whoever started it.
    """
    try:
        lines = _STATUS.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
