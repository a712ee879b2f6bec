"""Which lines are kept whole: the last few, usually two, that share no checkpoint.

If the newest line turns out to be damaged, the one before it must still work; so it must not rest on
the same snapshots. A round replaces every checkpoint of the line, and then these are simply the last
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
    """The last disjoint lines of a line that moves, at most `count` of them, oldest first."""

    def __init__(self, line: RecoveryLine, count: int = 2) -> None:
        self.lines = [line]
        self.count = count

    @property
    def older(self) -> RecoveryLine:
        """The oldest line that is kept: nothing before it is needed any more."""
        return self.lines[0]

    @property
    def newer(self) -> RecoveryLine:
        """The newest of the kept lines; the line that moves may be ahead of it in some tasks."""
        return self.lines[-1]

    def before(self, steps: int) -> RecoveryLine:
        """The kept line so many steps before the newest, or the oldest if there are not so many."""
        return self.lines[max(0, len(self.lines) - 1 - steps)]

    def advance(self, line: RecoveryLine) -> bool:
        """The line has moved; True if that makes it another line, which shares no checkpoint."""
        if not is_ahead(line, self.newer):
            return False
        self.lines = [*self.lines, line][-self.count :]
        return True

    def go_back(self, line: RecoveryLine) -> None:
        """The line was damaged, and this one is used instead: forget the lines beyond it."""
        while self.lines and is_behind(line, self.newer):
            self.lines.pop()
        self.lines = self.lines or [line]
