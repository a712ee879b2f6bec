"""Who starts the processes that become slots: Spark, or in tests anybody who can start a process."""

from typing import Protocol

from snapline.runtime.slot_process import SlotSpec


class Launcher(Protocol):
    """Starts processes that run a slot's body."""

    def start(self, spec: SlotSpec, secret: bytes) -> None:
        """Remember what the processes are to run, and the secret of the run, which no file may hold."""
        ...

    def launch(self) -> None:
        """Start one more process."""
        ...

    def trouble(self) -> str | None:
        """Why the last process that could not run did not."""
        ...

    def cancel(self, tag: str) -> None:
        """End the process that introduced itself with this tag, even if it stands still."""
        ...

    def stop(self) -> None:
        """End all that still run."""
        ...
