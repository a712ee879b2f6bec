"""Slots as plain processes of this machine: the launcher for tests, benchmarks and sweeps without Spark.

Everything but the start of a process is as on Spark. What a process is to run comes through its standard
input, so neither the secret of the run nor its job is left on disk or seen in a list of processes.
"""

import os
import subprocess
import sys
import threading
from contextlib import suppress
from logging import getLogger
from typing import Any

from pyspark import cloudpickle

from snapline.runtime.launch.launcher import OnExit, OnLeaving
from snapline.runtime.slot.process import SlotSpec

_LOG = getLogger(__name__)

PROGRAM = """
import pickle, sys
from snapline.runtime.slot.process import SlotProcess
SlotProcess(*pickle.load(sys.stdin.buffer), sys.argv[1]).run()
"""

WARM_PROGRAM = f"from snapline.kernels import cache\ncache.load()\n{PROGRAM}"
"""A slot that has its compiled kernels before input is due, as one that Spark forks."""


class ProcessSlots:
    """Starts one process per slot."""

    def __init__(self, *, program: str = PROGRAM) -> None:
        self.program = program  #: what each process runs
        self._told = b""
        self._on_exit: OnExit = lambda tag, why: None
        self._waiting: list[threading.Thread] = []
        self._complaints: dict[str, str] = {}  #: what each said last on its standard error
        self.processes: dict[str, subprocess.Popen[bytes]] = {}  #: by tag

    def start(self, spec: SlotSpec, secret: bytes, on_exit: OnExit, on_leaving: OnLeaving) -> None:
        """Remember what the processes are to run, and who is told when one has ended; none has to leave."""
        pickler: Any = cloudpickle  # it has no types
        self._told = pickler.dumps((spec, secret))
        self._on_exit = on_exit

    def launch(self, role: str) -> str:
        """Start one more process; return its tag."""
        tag = f"process-{len(self.processes)}"
        process = subprocess.Popen(
            [sys.executable, "-c", self.program, tag],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes[tag] = process
        _LOG.info("launched %s for %s as process %s", tag, role, process.pid)
        waiting = threading.Thread(target=self._wait, args=(tag, process), name=tag, daemon=True)
        self._waiting.append(waiting)
        waiting.start()
        return tag

    def _wait(self, tag: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        # Beside the driver's loop: a pipe takes all of a large job only once its reader has started. If the
        # process is gone already, what follows says why.
        with suppress(BrokenPipeError), process.stdin as told:
            told.write(self._told)
        assert process.stderr is not None
        with process.stderr:
            said = process.stderr.read().decode().strip().rpartition("\n")[2]
        if said:
            self._complaints[tag] = said
        code = _code_of(process)
        if code < 0:
            said = f"a process was killed by signal {-code}"
        self._on_exit(tag, said or (f"a process ended with exit code {code}" if code else None))

    def cancel(self, tag: str) -> None:
        """End a process, even if it stands still."""
        self.processes[tag].kill()

    def stop(self) -> None:
        """End all that still run, and wait until they are gone."""
        for process in self.processes.values():
            process.kill()
        for waiting in self._waiting:
            waiting.join()
        for process in self.processes.values():
            process.wait()

    def complaints(self) -> list[str]:
        """What the processes said before they ended, each its last line; all have ended."""
        return [self._complaints[tag] for tag in self.processes if tag in self._complaints]


def _code_of(process: subprocess.Popen[bytes]) -> int:
    """How a process has ended; negative: by this signal. Its CPU time can still be asked for."""
    try:
        ending = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:  # somebody else has waited for it
        return process.wait()
    assert ending is not None
    return ending.si_status if ending.si_code == os.CLD_EXITED else -ending.si_status
