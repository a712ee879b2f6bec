"""What is said while a run goes on."""

from dataclasses import dataclass

from rich.markup import escape

from snapline.cli_tables import messages
from snapline.journal.entry import Happened
from snapline.metrics.second import Second


@dataclass(slots=True)
class Teller:
    """Says what happens while a run goes on, in plain lines."""

    commits: int = 0

    def event(self, happened: Happened) -> None:
        """Take an event of the driver."""
        line = self._line(happened)
        if line is not None:
            messages().print(f"{happened.at_us / 1e6:8.2f} s  {escape(line)}")

    def second(self, second: Second) -> None:
        """Say nothing."""

    def _line(self, happened: Happened) -> str | None:
        detail = happened.detail
        match happened.what:
            case "killed":
                return f"signal {detail['signal']} to {happened.actor} (process {detail['pid']})"
            case "lost":
                return f"slot {detail['slot']} lost; {self.commits} lines were committed before"
            case "running":
                return f"all slots run (epoch {happened.epoch})"
            case "decided":
                self.commits += detail["epoch"] == happened.epoch
                return None
            case "finished":
                return f"all input is processed and all output published ({self.commits} lines)"
            case "stopped":
                return f"stopped: {detail['problem']}"
            case _:
                return None
