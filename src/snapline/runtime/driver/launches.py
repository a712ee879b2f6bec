"""Launches the processes that are missing, and watches those that have not registered yet.

How many are needed is always worked out anew: one for every life without a process, and the spares that are
missing. So nothing waits for a process that will never come: whoever fails, before it registered or after,
is missing, and what is missing is launched as soon as the restart strategy allows it.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from snapline.ids import Epoch, SlotId
from snapline.runtime.driver.restart import GivenUp, ProcessFailure, RestartStrategy
from snapline.runtime.driver.roster import Roster, Timeouts
from snapline.runtime.launch.launcher import Launcher, LauncherGone

SPARE_AGAIN_S: Final = 2.0
"""How long until a used spare is replaced: not at once, while restoring needs all cores."""

SPARE_FAILED_S: Final = 10.0
"""How long until a spare that could not be started is tried again: nobody waits for it."""

SOON_S: Final = 0.001
"""By how much an alarm may come too early, because times are rounded."""


class Staff(Protocol):
    """What the launches ask of the driver."""

    roster: Roster
    strategy: RestartStrategy
    begun: bool  #: whether all slots have run
    finished: bool  #: whether no process is needed any more

    @property
    def next_epoch(self) -> Epoch:
        """The epoch in which a process that is launched now will take part."""
        ...

    def give_up(self, end: GivenUp) -> None:
        """End the run."""
        ...

    def tell(self, reason: str) -> None:
        """Write down that a process did not start, and why."""
        ...


class Launches:
    """Launches processes until every life of a slot, and every spare, has one."""

    def __init__(
        self,
        staff: Staff,
        launcher: Launcher,
        timeouts: Timeouts,
        after: Callable[[float, Callable[[], None]], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.staff = staff
        self.roster = staff.roster
        self.strategy = staff.strategy
        self.launcher = launcher
        self.timeouts = timeouts
        self.after = after  #: calls a function after a number of seconds ...
        self.now_s = now_s  #: ... of this clock
        self.awaited: dict[str, float] = {}  #: unregistered processes: when each was launched
        self._known: dict[str, SlotId | None] = {}  #: all tags, and the slot that each is meant for
        self._next_s = 0.0  #: the time before which nothing is launched
        self._spare_s = 0.0  #: the time before which no spare is launched

    def fill(self) -> None:
        """Launch the processes that are missing, unless it is too early."""
        now_s = self.now_s()
        if self.staff.finished or now_s < self._next_s - SOON_S:
            return  # an alarm is set for that time
        lives, spares = self.roster.vacant()
        # Spares come after the slots, which would wait for them, and whose places they would take.
        spares_due = self.staff.begun and now_s >= self._spare_s - SOON_S
        needed = lives + (spares if spares_due else 0)
        for _ in range(needed - len(self.awaited)):
            slot = self._unattended()
            role = "spare" if slot is None else f"slot {slot}"
            try:
                tag = self.launcher.launch(f"{role}/epoch {self.staff.next_epoch}")
            except LauncherGone as gone:
                self.staff.give_up(GivenUp(str(gone)))
                return
            except Exception as error:  # whatever it is: another launch may succeed
                reason = f"a process could not be launched: {type(error).__name__}: {error}"
                self._absent(ProcessFailure("", reason, now_s))
                continue
            self._known[tag] = slot
            self.awaited[tag] = now_s
            self.after(self.timeouts.register_s, partial(self._overdue, tag))

    def _unattended(self) -> SlotId | None:
        """A slot for which nobody is here and nobody was launched; None: only a spare is missing."""
        coming = {self._known[tag] for tag in self.awaited}
        slots = self.roster.without_process()
        return next((slot for slot in slots if slot not in coming), None)

    def meant(self, tag: str) -> SlotId | None:
        """The slot for which a process was launched, and after which its Spark job is called."""
        return self._known.get(tag)

    # Processes that were launched and have not registered.

    def registered(self, role: str) -> tuple[str, float]:
        """Note that a process has registered; return its tag, and when it was launched."""
        tags = role.split(",")  # Spark adds those of the user
        tag = next((tag for tag in tags if tag in self._known), role)
        return tag, self.awaited.pop(tag, self.now_s())

    def ended(self, tag: str, reason: str | None) -> None:
        """Note that a process is gone; if it had registered, this only adds the reason."""
        if tag in self.awaited:
            why = f"{reason or 'a process ended'} before it registered"
            self._absent(ProcessFailure(tag, why, self.awaited.pop(tag)))
        elif reason is not None:
            self.strategy.explain(tag, reason)

    def _overdue(self, tag: str) -> None:
        if tag not in self.awaited or self.staff.finished:
            return
        waited = f"within {self.timeouts.register_s:g} s"
        if not self.staff.begun and self.roster.vacant()[0]:
            advice = "ask for fewer slots, or give Spark more cores"
            self.staff.give_up(GivenUp(f"{self.roster} have started {waited}: {advice}"))
            return
        started_s = self.awaited.pop(tag)
        self.launcher.cancel(tag)  # if it registers all the same, it is used or sent away
        self._absent(ProcessFailure(tag, f"a process did not register {waited}", started_s))

    def _absent(self, failure: ProcessFailure) -> None:
        if self.staff.finished:
            return
        self.staff.tell(failure.reason)
        if self.roster.vacant()[0] <= len(self.awaited):
            self.spare_used(SPARE_FAILED_S)
        else:
            self.failed(failure)

    # Processes that have registered.

    def failed(self, failure: ProcessFailure) -> None:
        """Count a failure, and launch the next process when the restart strategy allows it."""
        now_s = self.now_s()
        answer = self.strategy.failed(now_s, failure)
        if isinstance(answer, GivenUp):
            self.staff.give_up(answer)
            return
        self._next_s = answer
        self.after(answer - now_s, self.fill)

    def spare_used(self, delay_s: float = SPARE_AGAIN_S) -> None:
        """Launch another spare later, in place of one that was used or lost."""
        self._spare_s = self.now_s() + delay_s
        self.after(delay_s, self.fill)
