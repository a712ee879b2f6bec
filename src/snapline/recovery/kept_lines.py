"""Which lines are kept whole: the last two that share no checkpoint.

If the newest line turns out to be damaged, the one before it must still work; so it must not rest on
the same snapshots. A round replaces every checkpoint of the line, and then these are simply the last two
lines. Where the line moves task by task, a line counts as the next one only when every task has moved.
"""

from snapline.core.messages import RecoveryLine
from snapline.ids import INITIAL


def is_ahead(line: RecoveryLine, of: RecoveryLine) -> bool:
    """Whether every task is at a newer checkpoint on `line` than on the line `of`."""
    return all(n > of.checkpoints.get(task, INITIAL) for task, n in line.checkpoints.items())


def is_behind(line: RecoveryLine, of: RecoveryLine) -> bool:
    """Whether some task is at an older checkpoint on `line` than on the line `of`."""
    return any(n < of.checkpoints.get(task, INITIAL) for task, n in line.checkpoints.items())


class KeptLines:
    """The last two committed lines that share no checkpoint, `newer` and `older`."""

    def __init__(self, line: RecoveryLine) -> None:
        self.older = line
        self.newer = line

    def advance(self, line: RecoveryLine) -> bool:
        """Take note that the committed line has moved. True if this changed which line is the older one."""
        if not is_ahead(line, self.newer):
            return False
        self.older, self.newer = self.newer, line
        return True

    def go_back(self, line: RecoveryLine) -> None:
        """Take note that the job goes back to `line`, because a newer one turned out to be damaged."""
        if is_behind(line, self.newer):
            self.newer = self.older
        if is_behind(line, self.older):
            self.older = self.newer = line
