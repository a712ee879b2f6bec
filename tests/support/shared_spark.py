"""One real Spark for all tests that can share it: started for the first of them, stopped behind the last.

A process has one Spark at a time. So the tests that share one come first, file by file, and it is stopped
before a file in which somebody starts a Spark of another shape, or none. Other tests in the same order stay
right, and are only slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "spark"


class SharedSpark:
    """The Spark of this process, if it runs."""

    def __init__(self) -> None:
        self.session: SparkSession | None = None

    def running(self, home: str) -> SparkSession:
        """Start it, if it does not run; all that it writes, its history included, lies in `home`."""
        if self.session is None:
            # Whoever runs tests without Spark does not wait until Python has read all of it.
            from snapline.spark.slot_jobs import own_session

            kept = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": home}
            # So that Spark's pages know of running tasks what is a second old, not ten.
            kept |= {"spark.local.dir": home, "spark.executor.heartbeatInterval": "1s"}
            # Else Spark keeps a worker that has answered a question for a minute, and tests would wait for
            # its end before they know that no slot is left.
            kept |= {"spark.python.worker.reuse": "false"}
            self.session = own_session(2, spares=1, settings=kept)
        return self.session

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self.session is not None:
            self.session.stop()
            self.session = None


SHARED = SharedSpark()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """Room for two slots and a spare (or a process that is slow to go), and a core for everything else."""
    return SHARED.running(str(tmp_path_factory.mktemp(NAME)))


def _shares(item: pytest.Item) -> bool:
    return NAME in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever shares Spark comes first, then who starts one of his own: these files take longest."""
    sharing = {item.path for item in items if _shares(item)}
    starting = {item.path for item in items if item.get_closest_marker(NAME)}
    items.sort(key=lambda item: (item.path not in sharing, item.path not in starting))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop Spark behind the last file that shares it."""
    if nextitem is None or (nextitem.path != item.path and not _shares(nextitem)):
        SHARED.stop()
