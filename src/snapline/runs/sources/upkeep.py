"""The upkeep of the streams of a run, beside it: nobody waits for it, and what fails is done the next time.

Every few seconds each stream has its manifests bundled. With `retain_ms` its input is deleted, too, once it
is older than that and every line has passed it to which anybody can go back. Which lines these are is known
where garbage is collected (`Registry.passed`): a rollback needs snapshots, and those before the oldest line
that is kept are deleted by then, with a durable decision behind that. A resume and a fork begin at a line
that is kept, too. The offsets are part of a checkpoint's metadata, so no snapshot is read for them.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from snapline.errors import StorageError
from snapline.ids import Millis
from snapline.runtime.driver.driver import Driver
from snapline.storage.streams.ingress import StreamIngress
from snapline.storage.streams.upkeep import StreamUpkeep

EVERY_S: Final = 5.0


class UpkeepThread:
    """Tidies the streams in some directories as long as a driver runs.

    `retain_ms`: how long input is kept after every line has passed it; None: for ever.
    """

    def __init__(self, places: Sequence[Path], driver: Driver, retain_ms: Millis | None) -> None:
        self._streams = [StreamUpkeep(place) for place in places]
        self._driver = driver
        self._retain_ms = retain_ms
        self._left = threading.Event()
        name = "snapline upkeep of streams"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._left.wait(EVERY_S):
            passed = self._passed() if self._retain_ms is not None else {}
            for stream in self._streams:
                with suppress(StorageError):
                    self._tend(stream, passed.get(stream.place))

    def _tend(self, stream: StreamUpkeep, passed: Sequence[int] | None) -> None:
        stream.bundle()
        if self._retain_ms is not None and passed is not None:
            stream.raise_floor(passed, int(time.time() * 1000) - self._retain_ms)
        stream.tidy()

    def _passed(self) -> Mapping[Path, Sequence[int]]:
        """What all kept lines have passed: asked in the driver's loop, which alone knows it."""
        found: dict[Path, Sequence[int]] = {}
        answered = threading.Event()

        def answer() -> None:
            found.update(passed_in(self._driver))
            answered.set()

        with suppress(OSError):  # the loop may be closed
            self._driver.loop.post(answer)
            while not answered.wait(0.1) and not self._left.is_set():
                pass
        return found if answered.is_set() else {}

    def stop(self) -> None:
        """End it, after what it is doing just now."""
        self._left.set()
        self._thread.join()


def passed_in(driver: Driver) -> dict[Path, list[int]]:
    """The offsets that all kept lines of a job have passed, per partition, by the place of the stream."""
    passed: dict[Path, list[int]] = {}
    for task, plan in driver.job.deployment.plans.items():
        if isinstance(plan.ingress, StreamIngress):
            offsets = driver.engine.registry.passed.get(task, {})
            known = passed.setdefault(plan.ingress.place, [0] * plan.ingress.partitions)
            for partition in plan.partitions:
                known[partition] = offsets.get(partition, 0)
    return passed
