"""What the driver sees of a run while it goes on, and the figures that follow from it."""

from collections.abc import Callable
from typing import Any

from snapline.journal.entry import Happened


class Timeline:
    """Counts what the driver saw, and how long it took to notice and to restart."""

    def __init__(self, on_event: Callable[[Happened], None]) -> None:
        self._on_event = on_event
        self.commits = self.rollbacks = self.kills = 0
        self._killed_us: int | None = None
        self._lost_us: int | None = None
        self.detection_s: list[float] = []
        self.restart_s: list[float] = []
        self.pids: list[int] = []

    def see(self, happened: Happened) -> None:
        """Take an event of the driver."""
        match happened.what:
            case "killed":
                self.kills += 1
                self.pids.append(happened.detail["pid"])
                self._killed_us = happened.at_us
            case "lost":
                self.rollbacks += 1
                if self._killed_us is not None:
                    self.detection_s.append((happened.at_us - self._killed_us) / 1e6)
                    self._killed_us = None
                self._lost_us = self._lost_us or happened.at_us
            case "running":
                if self._lost_us is not None:
                    self.restart_s.append((happened.at_us - self._lost_us) / 1e6)
                    self._lost_us = None
            case "decided":
                self.commits += happened.detail["epoch"] == happened.epoch
            case _:
                pass
        self._on_event(happened)

    def metrics(self) -> dict[str, Any]:
        """The figures of the run."""
        return {
            "commits": self.commits,
            "kills": self.kills,
            "lost": self.rollbacks,
            "detection_s": [round(s, 3) for s in self.detection_s],
            "restart_s": [round(s, 3) for s in self.restart_s],
            "killed_pids": self.pids,
        }
