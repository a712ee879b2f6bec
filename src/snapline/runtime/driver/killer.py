"""Ends processes: by signals as faults ask for it, and by cancelling the job of one that is given up.

A signal reaches a process of this machine only; the id of one elsewhere may name another one here.
"""

import contextlib
import os
import signal

from snapline.ids import SlotId
from snapline.journal.fault_happenings import (
    FaultHappening,
    FaultMissed,
    ProcessKilled,
    ProcessPaused,
)
from snapline.net.listener import is_here
from snapline.runtime.driver.control import RunControl
from snapline.runtime.driver.roster import Member, Roster
from snapline.runtime.launch.launcher import Launcher


class Killer:
    """Ends the processes of one run, or lets them stand still."""

    def __init__(self, run: RunControl, roster: Roster, launcher: Launcher) -> None:
        self._run = run
        self._roster = roster
        self._launcher = launcher

    def cancel(self, member: Member) -> None:
        """End the job of a process that is given up, wherever it runs."""
        self._launcher.cancel(member.tag)

    def member(self, slot: SlotId) -> Member | None:
        """The process of the present life of a slot, if it is there."""
        return self._roster.of((slot, self._run.engine.members.incarnations[slot]))

    def pid(self, slot: SlotId) -> int | None:
        """The process id of a slot. If it runs elsewhere, the run ends: no fault can reach it."""
        member = self.member(slot)
        if member is None:
            return None
        host = member.hello.host
        if not is_here(host):
            self._run.finish(f"slot {slot} runs on {host}: faults only reach this machine")
            return None
        return member.hello.pid

    def strike(self, *slots: SlotId) -> None:
        """Note that a fault is done to these slots: if it ends them, that counts as no failure."""
        for member in filter(None, map(self.member, slots)):
            member.struck = True

    def kill(self, slot: SlotId, how: int = signal.SIGKILL, fault: str | None = None) -> None:
        """Send SIGKILL or SIGSTOP to the process of a slot, if it lives, and write down what happened."""
        pid, life = self.pid(slot), self._run.engine.members.incarnations[slot]
        struck = ProcessPaused if how == signal.SIGSTOP else ProcessKilled
        what: FaultHappening = FaultMissed(fault)
        # A process that is gone may still have a connection that does not know it yet.
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                self.strike(slot)
                os.kill(pid, how)
                what = struck(fault, life, (pid,))
        self._run.note(f"slot/{slot}", self._run.engine.epoch, what)

    def wake(self, pid: int) -> None:
        """Let a process that was stopped go on, if it still exists."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
