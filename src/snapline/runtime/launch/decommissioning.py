"""Notices that Spark decommissions an executor on which a slot runs, so that the slot can leave in time.

Spark's scheduler knows which executors are to go: a worker of a standalone master tells it when it gets
SIGPWR, an executor on Kubernetes when its pod is to end. It starts no task there any more, waits for those
that run, for as long as the cluster lets it, and tells no Python process of it; and a slot never returns by
itself. No listener of Spark's is told, either, so the scheduler is asked once a second.
"""

import threading
from collections.abc import Callable, Mapping
from logging import getLogger
from typing import Any, Final

from pyspark import SparkContext

from snapline.runtime.launch.launcher import OnLeaving

_LOG = getLogger(__name__)

LOOK_S: Final = 1.0
SETTING: Final = "spark.decommission.enabled"


def is_watched(context: SparkContext) -> bool:
    """Whether executors of this session may be decommissioned: it is enabled, and there are executors."""
    enabled = str(context.getConf().get(SETTING, "false")).strip().lower() == "true"
    master = str(context.master)
    return enabled and (not master.startswith("local") or master.startswith("local-cluster"))


class DecommissionWatch:
    """Asks Spark which executors are to go, in a thread of its own, and tells which slots run there.

    `executors` says by tag where processes run. Asking for that is dear, so it is called only while an
    executor is being decommissioned.
    """

    def __init__(
        self,
        context: SparkContext,
        executors: Callable[[], Mapping[str, set[str]]],
        tell: OnLeaving,
    ) -> None:
        self._scheduler: Any = context._jsc.sc().taskScheduler()
        self._executors = executors
        self._tell = tell
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decommissioning", daemon=True)

    def start(self) -> None:
        """Look once a second, until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more, and tell nothing any more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            try:
                self.look()
            except Exception as error:  # py4j raises many kinds, when Spark has ended, too
                _LOG.info("cannot see which executors are decommissioned: %s", error)

    def look(self) -> None:
        """Tell which processes are to leave, if any."""
        if self._scheduler.executorsPendingDecommission().isEmpty():
            return
        where = self._executors()
        known = {executor for executors in where.values() for executor in executors}
        going = {executor for executor in known if self._is_going(executor)}
        if leaving := [tag for tag, executors in where.items() if executors & going]:
            self._tell(leaving)

    def _is_going(self, executor: str) -> bool:
        return bool(self._scheduler.getExecutorDecommissionState(executor).isDefined())
