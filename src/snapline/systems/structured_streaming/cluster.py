"""A local cluster of Spark: executors that are processes of their own, and a network to the driver.

Spark's master and workers are threads of the driver; executors are children of its Java, and in its
group. They can be killed alone, and die with the driver.

Between the driver and its executors stands a proxy of ours. The driver listens on one loopback address
and tells its executors another one: there the proxies listen, at the same ports, one for its messages and
one for its blocks of data. Executors open all connections to the driver, and both sides talk over them:
tasks, their results, heartbeats, broadcasts. Connections between executors do not pass through a proxy. A
fault of the network concerns all executors, whichever slot it names.
"""

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

from snapline.net.proxy import Proxy
from snapline.systems.harness.base import Network
from snapline.systems.harness.processes import children

MEMORY_MB = 1024
HIDDEN = "127.0.0.2"
"""The address at which the driver really listens."""


class LocalCluster:
    """The executors of a driver, also after the driver was started again."""

    def __init__(self, executors: int) -> None:
        """Prepare a cluster of so many executors, with one core each."""
        self._messages, self._blocks = _proxy(), _proxy()
        self._logs: set[Path] = set()
        self.master = f"local-cluster[{executors},1,{MEMORY_MB}]"
        self.killed = 0  #: how many executors were killed so far

    @property
    def settings(self) -> dict[str, str]:
        """The settings that make Spark's driver listen behind the proxies."""
        return {
            "spark.driver.bindAddress": HIDDEN,
            "spark.driver.host": self._messages.address[0],
            "spark.driver.port": str(self._messages.address[1]),
            "spark.driver.blockManager.port": str(self._blocks.address[1]),
            "spark.port.maxRetries": "0",  # there is no proxy at any other port
        }

    def kill(self, java: int, number: int) -> list[int]:
        """Send SIGKILL to an executor of this driver; the oldest one is number 0."""
        ages = {
            pid: int(command[command.index("--executor-id") + 1])
            for pid, command in children(java).items()
            if "--executor-id" in command
        }
        living = sorted(ages, key=ages.__getitem__)
        for pid in living[number : number + 1]:
            os.kill(pid, signal.SIGKILL)
            self.killed += 1
        return living[number : number + 1]

    def disturb(self, fault: Network) -> int:
        """Make the network slow, or cut it, from now on; return how many connections are concerned."""
        met = self._messages.connections + self._blocks.connections
        for proxy in (self._messages, self._blocks):
            proxy.plan([replace(fault, at_ms=0)])
        return met

    def logs_at(self, path: Path) -> None:
        """Remember where Spark keeps the logs of its executors, so that `close` removes them."""
        self._logs.add(path)

    def close(self) -> None:
        """Break all connections, and leave nothing behind."""
        self._messages.close()
        self._blocks.close()
        for path in self._logs:
            shutil.rmtree(path, ignore_errors=True)


def _proxy() -> Proxy:
    """A proxy whose target is the same port at the driver's address; a port free at one is so at both."""
    proxy = Proxy((HIDDEN, 0))
    proxy.target = (HIDDEN, proxy.address[1])
    return proxy
