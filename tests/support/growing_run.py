"""A run that goes on: a directory whose journal grows as a test says."""

from reported_runs import crashed_run
from snapline.journal.codec import lines
from snapline.journal.entry import Happened
from snapline.rundir.directory import RunDirectory


class GrowingRun:
    """A run directory whose journal grows as a test says."""

    def __init__(self, tmp_path):
        spec = {"flow": "counting", "protocol": "uncoordinated", "slots": 3, "faults": ""}
        self.directory = RunDirectory.create(tmp_path, "counting", "uncoordinated", spec)
        self.entries = [e for e in crashed_run().entries if e.actor == "coordinator" or told(e)]
        self.written = 0
        self.path = self.directory.path / "journal" / "driver-1.jsonl"
        self.path.parent.mkdir()
        self.lines = list(lines(self.entries))
        self.path.write_text(self.lines[0])

    def grow(self, share):
        """Append entries until this share of them is there."""
        until = round(len(self.entries) * share)
        self.append("".join(self.lines[1 + self.written : 1 + until]))
        self.written = until

    def append(self, text):
        with self.path.open("a") as file:
            file.write(text)


def told(entry):
    return isinstance(entry, Happened) and entry.actor.startswith("slot/")
