"""A run in the background: `query = sl.start(flow, spark)`, with what a `StreamingQuery` of Spark's has.

A driver runs in a thread of its own, so several queries share one session. `stop` ends a query with a last
line, which holds all that was taken in, and `sl.start(resume=query.name)` goes on from it. A program that
exits while queries run stops them first, within a limit: beyond it they end at once, and are resumed at
their last line as well.
"""

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from snapline.engine.coordinator.holding import STOPPED
from snapline.errors import RunEnded, UsageError
from snapline.journal.entry import Happened
from snapline.journal.happenings import (
    JobRunning,
    JobStopping,
    LineDecided,
    SlotLeft,
    SlotLost,
)
from snapline.judge.evidence import Question
from snapline.judge.run_directory import judge
from snapline.judge.verdict import Verdict
from snapline.metrics.second import Second
from snapline.rundir.directory import RunDirectory
from snapline.runs.finished import Run
from snapline.runs.listener import Listening, progress_of
from snapline.runs.run import PreparedRun, conclude, drive_prepared
from snapline.runtime.driver.driver import INTERRUPTED, Driver, Timeouts
from snapline.runtime.driver.timeline import Watcher

RECENT: Final = 100
"""How many seconds `recent_progress` shows."""

EXIT_S: Final = 30.0
"""How long a program that exits waits for the last lines of its queries."""

_running: "dict[Query, None]" = {}
_known = threading.Lock()


class Query:
    """A run that goes on in the background. Its methods may be called from any thread."""

    def __init__(
        self,
        prepared: PreparedRun,
        timeouts: Timeouts | None = None,
        watcher: Watcher | None = None,
        listener: Any = None,
    ) -> None:
        self._prepared = prepared
        self._timeouts = timeouts
        self._watcher = Listening(listener, _Both(self, watcher))
        self._driver: Driver | None = None
        self._ready = threading.Event()  #: it has a run directory, or has failed before
        self._over = threading.Event()
        self._message = "starting"
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._error: BaseException | None = None
        self._run: Run | None = None
        self._thread = threading.Thread(target=self._live, name="snapline query", daemon=True)

    def __repr__(self) -> str:
        return f"Query({self._name()!r}, {self._message})"

    # What a program asks.

    @property
    def directory(self) -> RunDirectory:
        """The directory of its run; waits until there is one, and raises if there never will be."""
        self._ready.wait()
        if self._driver is None:
            raise UsageError(
                "this query failed before its run began: see exception()"
            ) from self._error
        return self._driver.directory

    @property
    def name(self) -> str:
        """The name of its run, by which it is resumed and its output read."""
        return self.directory.name

    @property
    def id(self) -> str:
        """What tells its run from all others; it stays the same when the run is resumed."""
        return self.directory.identity

    @property
    def is_active(self) -> bool:
        """Whether it still goes on."""
        return not self._over.is_set()

    @property
    def status(self) -> dict[str, Any]:
        """What it does now: `message`, and whether it is active and takes in data."""
        recent = self._recent[-1] if self._recent else None
        return {
            "message": self._message,
            "is_active": self.is_active,
            "is_data_available": bool(self.is_active and recent and recent["read"]),
        }

    @property
    def last_progress(self) -> dict[str, Any] | None:
        """The figures of the last second (`runs.listener.RunProgress`); None if none is over yet."""
        return self._recent[-1] if self._recent else None

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        """The figures of the last seconds, oldest first."""
        return list(self._recent)

    @property
    def run(self) -> Run | None:
        """The run with its verdict, once it came to its end or was given up; None if it can go on."""
        return self._run

    def exception(self) -> BaseException | None:
        """The error that ended it, or None."""
        return self._error

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until it is over, or for so many seconds; True if it is over. Raises what ended it."""
        over = self._over.wait(timeout)
        if over and self._error is not None:
            raise self._error
        return over

    def stop(self) -> None:
        """End it with a last line, and wait for that. What was taken in by then is public afterwards."""
        self._ask(Driver.stop)
        self._over.wait()

    def judge(self, *, reference: bool = False) -> Verdict:
        """Judge what it has put out, up to its last line if it was stopped: see `snapline validate`.

        It takes the longer, the longer the query ran, and nothing is stopped or written. `reference` holds
        a flow of your own against runs of it without failures. Raises UsageError while it goes on.
        """
        if self.is_active:
            raise UsageError(f"{self.name} goes on: it is judged when it was stopped, or is over")
        flow = self._prepared.program.given
        return judge(self.directory, Question(reference=reference), flow=flow).verdict

    # The thread.

    def begin(self) -> None:
        """Start the thread; called once."""
        with _known:
            _running[self] = None
        self._thread.start()

    def _ask(self, what: Callable[[Driver], None]) -> None:
        """Have the driver's loop do something, if there is one and it goes on."""
        self._ready.wait()
        driver = self._driver
        if driver is not None and self.is_active:
            driver.loop.post(partial(what, driver))

    def _live(self) -> None:
        try:
            self._drive()
        except BaseException as error:
            self._error = error
            self._message = f"failed: {error}"
            self._tell_failure(error)
        finally:
            self._ready.set()
            self._over.set()
            with _known:
                _running.pop(self, None)

    def _tell_failure(self, error: BaseException) -> None:
        """Tell the listener what ended the query; if that raises, it must not hide the error."""
        try:
            self._watcher.ended(str(error), None)
        except BaseException as another:
            error.add_note(f"the listener raised, too: {another!r}")

    def _drive(self) -> None:
        prepared, driver = drive_prepared(
            self._prepared, self._timeouts, self._watcher, self._begun
        )
        problem, kept = driver.problem, None
        if problem not in (STOPPED, INTERRUPTED):
            self._run = conclude(prepared, driver)
            kept = self._run.verdict.kept
            if problem is not None:
                self._error = RunEnded(f"{driver.directory.name} has ended: {problem}")
        self._message = problem or "came to its end"
        self._watcher.ended(problem, kept)

    def _begun(self, driver: Driver) -> None:
        self._driver = driver
        self._watcher.begins(driver)
        self._ready.set()

    def _name(self) -> str:
        return self._driver.directory.name if self._driver is not None else "..."

    def told(self, what: object) -> None:
        """Change the message of `status` by what has happened."""
        if isinstance(what, JobRunning):
            self._message = "running"
        elif isinstance(what, SlotLost):
            self._message = "recovering from a loss"
        elif isinstance(what, SlotLeft):
            self._message = "a slot moves to another executor"
        elif isinstance(what, JobStopping):
            self._message = "stopping: it waits for a last line"
        elif isinstance(what, LineDecided) and self._message == "starting":
            self._message = "its slots start"

    def measured(self, second: Second) -> None:
        """Add the figures of a second."""
        self._recent.append(asdict(progress_of(self._name(), second)))


class _Both:
    """The watcher of a query, which tells another one, too."""

    def __init__(self, query: Query, other: Watcher | None) -> None:
        self.query = query
        self.other = other

    def event(self, happened: Happened) -> None:
        self.query.told(happened.what)
        if self.other is not None:
            self.other.event(happened)

    def second(self, second: Second) -> None:
        self.query.measured(second)
        if self.other is not None:
            self.other.second(second)


def _stop_all() -> None:
    """Stop all queries before the program exits: with a last line if that comes in time, else at once."""
    for what, limit_s in ((Driver.stop, EXIT_S), (Driver.interrupt, EXIT_S / 3)):
        until_s = time.monotonic() + limit_s
        with _known:
            # Those that still start come last: they can be asked once they have a driver.
            queries = sorted(_running, key=lambda query: not query._ready.is_set())
        for query in queries:
            query._ready.wait(max(0.0, until_s - time.monotonic()))
            if (driver := query._driver) is not None and query.is_active:
                driver.loop.post(partial(what, driver))
        for query in queries:
            query._over.wait(max(0.0, until_s - time.monotonic()))


# It is called before the executors of `concurrent.futures` are closed, without which nothing is decided any
# more. That is earlier than `atexit`, and later than all that the main thread does.
getattr(threading, "_register_atexit", atexit.register)(_stop_all)
