"""A driver's time at a run: it begins when it takes the run over, and ends with it, or with a successor.

Only the ledger decides who runs a run. Here is what else a driver does in its own name, and how its
successor is protected from it, should it have been replaced without knowing it: the store that it took away
on purpose has its name, so it brings back no other; and before it breaks anything, or mends it, it looks
whether another driver has decided since.
"""

from dataclasses import replace
from uuid import uuid4

from snapline.engine.coordinator.ledger import Decision, decision_key, decode
from snapline.engine.job import Job
from snapline.errors import Deposed, SnaplineError, StorageError
from snapline.rundir.directory import RunDirectory
from snapline.rundir.past import damaged, read_past
from snapline.rundir.presence import Presence
from snapline.rundir.results import patiently


class Tenure:
    """One driver at one run."""

    def __init__(self, directory: RunDirectory, job: Job) -> None:
        """Take a run over. Raises what `read_past` does; then it is left as it was."""
        directory.mend_store()  # a driver that died in an outage could not
        self.past: Decision | None = patiently(lambda: read_past(directory, job))
        self.job = replace(job, run=directory.identity)  #: the job as the job of this run
        self.directory = directory
        self.author = uuid4().hex  #: the name that its decisions carry
        self.error: SnaplineError | None = None  #: why nobody can go on, or not this driver
        self._presence: Presence | None = None

    def begin(self) -> None:
        """Say that this process runs the run."""
        self._presence = Presence.announce(self.directory, self.author)

    def beat(self) -> None:
        """Show that this process still runs the run."""
        if self._presence is not None:
            self._presence.beat()

    def check(self) -> None:
        """Raise what has ended it, unless it was the job's own end."""
        if self.error is not None:
            raise self.error

    def give_up(self, error: StorageError) -> str:
        """Something is damaged or gone without which nobody can go on."""
        self.error = damaged(self.directory, error)
        return str(self.error)

    def deposed(self) -> str:
        """Another driver has decided."""
        name = self.directory.name
        self.error = Deposed(f"another driver has taken {name} over: it goes on there")
        return str(self.error)

    def is_over(self, number: int) -> bool:
        """Whether another driver has decided after decision `number` of this one, as far as one knows."""
        try:
            next_one = decode(self.directory.files.get(decision_key(number + 1)))
            if next_one.author != self.author:
                self.deposed()
        except StorageError:
            pass  # there is no next decision, or nobody knows
        return isinstance(self.error, Deposed)

    def end(self, number: int) -> None:
        """Undo what was done to the store on purpose, unless it is another's by now, and leave."""
        if not self.is_over(number):
            self.directory.trouble.end()
        self.directory.bring_store_back(self.author)
        if self._presence is not None:
            self._presence.leave()
