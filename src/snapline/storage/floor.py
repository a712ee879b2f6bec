"""How far published output was deleted: the *floor*, below which nobody finds anything any more.

A run that keeps its output for a while only (`retain`) deletes manifests from the first one on, and the
rows that they made public. The floor says which: it is durable BEFORE anything is deleted, so a manifest
that is gone above it is damage, and one below it was meant to go. It only rises. What still lies below it,
because whoever deleted was killed, or stood still and wrote it again, is nothing to a reader.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from snapline.errors import ObjectDamaged, RowsDeleted
from snapline.ids import TaskId


@dataclass(frozen=True, slots=True)
class Floor:
    """Up to where published output was deleted."""

    place: int = 0  # so many manifests, from the first one on
    number: int = 0  # of the last of them
    rows: Mapping[TaskId, int] = field(default_factory=dict)  # so many of each sink task
    at_ms: int = 0  # when the last of them was published: Unix time

    @property
    def until(self) -> str:
        """When the last of what was deleted had been published, as people write it."""
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

    def encode(self) -> bytes:
        """The binary form: JSON, because people may have to read it."""
        said = {"place": self.place, "number": self.number, "rows": self.rows, "at": self.at_ms}
        return json.dumps(said).encode()

    @staticmethod
    def decode(data: bytes) -> "Floor":
        """The floor behind a binary form. Raises ObjectDamaged."""
        try:
            said = json.loads(data)
            rows = {TaskId(task): int(count) for task, count in said["rows"].items()}
            return Floor(int(said["place"]), int(said["number"]), rows, int(said["at"]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ObjectDamaged(f"it is no floor of the output: {error}") from error

    def deleted(self, after: int) -> RowsDeleted:
        """The error for whoever asks for what follows the first `after` manifests."""
        return RowsDeleted(
            f"manifests {after + 1} to {self.place} were deleted with their rows, because the run keeps "
            f"its output for a while only (retain): what was published until {self.until} is gone"
        )

    def deleted_rows(self, task: TaskId, row: int) -> RowsDeleted:
        """The error for whoever asks for a row of a sink task that was deleted."""
        through = self.rows.get(task, 0)
        return RowsDeleted(
            f"rows {row} to {through} of {task} were deleted, because the run keeps its output for a while "
            f"only (retain): what was published until {self.until} is gone",
            through,
        )
