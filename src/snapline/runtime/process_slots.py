"""Slots as plain processes of this machine: the launcher for tests and benchmarks that need no Spark.

Everything but the start of a process is as on Spark. What a process is to run comes through its standard
input, so neither the secret of the run nor its job is left on disk or seen in a list of processes.
"""

import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from pyspark import cloudpickle

from snapline.runtime.launcher import OnExit
from snapline.runtime.slot_process import SlotSpec

PROGRAM = """
import pickle, sys
from snapline.runtime.slot_process import SlotProcess
SlotProcess(*pickle.load(sys.stdin.buffer), sys.argv[1]).run()
"""


class ProcessSlots:
    """Starts one process per slot."""

    def __init__(self, *, program: str = PROGRAM) -> None:
        self._program = program
        self._told = b""
        self._on_exit: OnExit = lambda tag, why: None
        self._waiting: list[threading.Thread] = []
        self._complaints: dict[str, str] = {}  #: what each said last on its standard error
        self.processes: dict[str, subprocess.Popen[bytes]] = {}  #: by tag

    def start(self, spec: SlotSpec, secret: bytes, on_exit: OnExit) -> None:
        """Remember what the processes are to run, and who is told when one has ended."""
        pickler: Any = cloudpickle  # it has no types
        self._told = pickler.dumps((spec, secret))
        self._on_exit = on_exit

    def launch(self) -> str:
        """Start one more process; its tag."""
        tag = f"process-{len(self.processes)}"
        process = subprocess.Popen(
            [sys.executable, "-c", self._program, tag],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes[tag] = process
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it is gone already, and `_wait` says why
            process.stdin.write(self._told)
            process.stdin.close()
        waiting = threading.Thread(target=self._wait, args=(tag, process), name=tag, daemon=True)
        self._waiting.append(waiting)
        waiting.start()
        return tag

    def _wait(self, tag: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with process.stderr:
            said = process.stderr.read().decode().strip().rpartition("\n")[2]
        if said:
            self._complaints[tag] = said
        # Not waited for: whoever wants to know what it has computed can still ask the kernel.
        ending = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        if ending is not None and ending.si_code != os.CLD_EXITED:
            said = f"a process was killed by signal {ending.si_status}"
        elif ending is not None and ending.si_status and not said:
            said = f"a process ended with exit code {ending.si_status}"
        self._on_exit(tag, said or None)

    def cancel(self, tag: str) -> None:
        """End a process, even if it stands still."""
        self.processes[tag].kill()

    def stop(self) -> None:
        """End all that still run."""
        for process in self.processes.values():
            process.kill()

    def complaints(self) -> list[str]:
        """What the processes said before they ended, each its last line; all have ended."""
        for waiting in self._waiting:
            waiting.join()
        for process in self.processes.values():
            process.wait()
        return [self._complaints[tag] for tag in self.processes if tag in self._complaints]
