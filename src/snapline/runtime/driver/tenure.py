"""A driver's time at a run: it begins when it takes the run over, and ends with it, or with a successor.

Only the ledger decides who runs a run. This module has what else a driver does in its own name,
and protects its successor from it, in case it was replaced without knowing it: a driver brings the
store back only if it took the store away itself; and before it breaks or mends anything, it looks
whether another driver has decided since.
"""

from dataclasses import replace
from uuid import uuid4

from snapline.engine.coordinator.ledger import Decision, is_superseded, newest_decision
from snapline.engine.job import Job
from snapline.errors import Deposed, SnaplineError, StorageError
from snapline.rundir.directory import RunDirectory
from snapline.rundir.past import damaged, read_past
from snapline.rundir.presence import Presence
from snapline.rundir.results import patiently


class Tenure:
    """What one driver knows of its run and does in its own name."""

    def __init__(self, directory: RunDirectory, job: Job) -> None:
        """Take a run over. Raises what `read_past` raises, and then leaves the run as it was."""
        directory.mend_store()  # in case a driver died in an outage
        self.past: Decision | None = patiently(lambda: read_past(directory, job))
        self.job = replace(job, run=directory.identity)  #: the job as the job of this run
        self.directory = directory
        self.author = uuid4().hex  #: the name that its decisions carry
        self.error: SnaplineError | None = None  #: why this driver, or any, cannot go on
        self._presence: Presence | None = None

    def begin(self) -> None:
        """Announce that this process runs the run."""
        self._presence = Presence.announce(self.directory, self.author)

    def beat(self) -> None:
        """Show that this process still runs the run."""
        if self._presence is not None:
            self._presence.beat()

    def check(self) -> None:
        """Raise the error that ended this driver's time, if there was one."""
        if self.error is not None:
            raise self.error

    def give_up(self, error: StorageError) -> str:
        """Note that something is damaged or gone that every driver needs; return the problem."""
        self.error = damaged(self.directory, error)
        return str(self.error)

    def deposed(self) -> str:
        """Note that another driver has taken the run over; return the problem."""
        name = self.directory.name
        self.error = Deposed(f"another driver has taken {name} over: it goes on there")
        return str(self.error)

    def is_over(self, number: int) -> bool:
        """Whether another driver is known to have decided after decision `number` of this one."""
        try:
            if is_superseded(self.directory.files, number):
                newest = newest_decision(self.directory.files, self.directory.identity)
                if newest is not None and newest.author != self.author:
                    self.deposed()
        except StorageError:
            pass  # nobody knows
        return isinstance(self.error, Deposed)

    def end(self, number: int) -> None:
        """Undo what was done to the store on purpose, unless it is another's by now, and leave."""
        if not self.is_over(number):
            self.directory.trouble.end()
        self.directory.bring_store_back(self.author)
        if self._presence is not None:
            self._presence.leave()
