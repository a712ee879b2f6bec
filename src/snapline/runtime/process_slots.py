"""Slots as plain processes of this machine: the launcher for tests and benchmarks that need no Spark.

Everything but the start of a process is as on Spark. What a process is to run comes through its standard
input, so neither the secret of the run nor its job is left on disk or seen in a list of processes.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from pyspark import cloudpickle

from snapline.runtime.slot_process import SlotSpec

PROGRAM = """
import pickle, sys
from snapline.runtime.slot_process import SlotProcess
SlotProcess(*pickle.load(sys.stdin.buffer), sys.argv[1]).run()
"""


class ProcessSlots:
    """Starts one process per slot; after so many launches the slots are given up as hopeless."""

    def __init__(
        self,
        on_hopeless: Callable[[str], None],
        *,
        program: str = PROGRAM,
        launches_max: int = 12,
    ) -> None:
        self._on_hopeless = on_hopeless
        self._program = program
        self._launches_max = launches_max
        self._told = b""
        self.processes: dict[str, subprocess.Popen[bytes]] = {}  #: by tag

    def start(self, spec: SlotSpec, secret: bytes) -> None:
        """Remember what the processes are to run, and the secret of the run."""
        pickler: Any = cloudpickle  # it has no types
        self._told = pickler.dumps((spec, secret))

    def launch(self) -> None:
        """Start one more process."""
        tag = f"process-{len(self.processes)}"
        if len(self.processes) >= self._launches_max:
            self._on_hopeless("the slots do not run")
            return
        process = subprocess.Popen(
            [sys.executable, "-c", self._program, tag],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(self._told)
        process.stdin.close()
        self.processes[tag] = process

    def trouble(self) -> str | None:
        """Why no process could run: `complaints` knows, once they have ended."""
        return None

    def cancel(self, tag: str) -> None:
        """End a process, even if it stands still."""
        self.processes[tag].kill()

    def stop(self) -> None:
        """End all that still run."""
        for process in self.processes.values():
            process.kill()

    def complaints(self) -> list[str]:
        """What the processes said before they ended, each its last line; all have ended."""
        found = []
        for process in self.processes.values():
            assert process.stderr is not None
            said = process.stderr.read().decode().strip()
            process.stderr.close()
            process.wait()
            if said:
                found.append(said.rpartition("\n")[2])
        return found
