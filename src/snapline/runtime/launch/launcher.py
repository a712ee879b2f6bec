"""The port through which the driver starts the processes that become slots."""

from collections.abc import Callable, Collection
from typing import Protocol, TypeAlias

from snapline.errors import SnaplineError
from snapline.runtime.slot.process import SlotSpec

OnExit: TypeAlias = Callable[[str, str | None], None]
"""(tag, why): a process is gone, and why in one line; None: it returned. Any thread may call it."""


OnLeaving: TypeAlias = Callable[[Collection[str]], None]
"""(tags): these processes run where nothing may run for much longer. It is said again and again, until they
are gone, and any thread may say it."""


class LauncherGone(SnaplineError):
    """No process can be started any more, however often it is tried; the message says why."""


class Launcher(Protocol):
    """Starts processes that run a slot's body."""

    def start(self, spec: SlotSpec, secret: bytes, on_exit: OnExit, on_leaving: OnLeaving) -> None:
        """Remember what the processes are to run, and who is told when one has ended, or is to leave.

        The secret of the run may be in no file.
        """
        ...

    def launch(self, role: str) -> str:
        """Start one more process; return the tag with which it will introduce itself.

        `role` is what it is meant to become, for people. Raises LauncherGone if it is no use to try again.
        """
        ...

    def cancel(self, tag: str) -> None:
        """End the process with this tag, even if it stands still."""
        ...

    def stop(self) -> None:
        """End all that still run."""
        ...
