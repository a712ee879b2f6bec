"""The part of a slot's shell that asks storage: what takes long is done beside the loop."""

from collections.abc import Callable
from typing import Final

from snapline.engine.shell import NextRead, SourceAlarm, Ticket
from snapline.rundir.directory import RunDirectory
from snapline.runtime.slot.background import Background, StorageAsker
from snapline.storage.api import Egress, Life, MessageLog, Storage
from snapline.storage.codec import Pieces
from snapline.storage.discards.files import FileDiscardStore
from snapline.storage.discards.port import Discards

DISCARDS: Final = "discards"
"""The folder of a run directory for the identities of records that were discarded."""


class StorageShell:
    """What a slot asks of storage; the process of a slot derives from it."""

    directory: RunDirectory
    storage: Storage
    background: Background
    compresses: bool  #: whether messages that are logged are compressed

    @property
    def asker(self) -> StorageAsker:
        """Whoever is to hear what storage answers."""
        raise NotImplementedError

    def at_hand(self, alarm: SourceAlarm, wanted: NextRead) -> bool:
        """Whether input is in memory; if not, it is fetched beside the loop."""
        return self.background.at_hand(self.asker, alarm, wanted)

    def open_log(self, life: Life) -> MessageLog:
        """The log of a task in this life."""
        return self.storage.logs.open(life, compress=self.compresses)

    def open_discards(self, life: Life) -> Discards:
        """Where a task in this life writes down what it discards."""
        return FileDiscardStore(self.directory.path / DISCARDS).open(life)

    def open_egress(self, life: Life, position: int) -> Egress:
        """The egress of a sink task in this life."""
        return self.storage.outlet.open(life, position)

    def store(self, ticket: Ticket, key: str, data: Callable[[], Pieces]) -> None:
        """Make an object and store it in the background."""
        self.background.store(self.asker, ticket, key, data)

    def sync(self, ticket: Ticket, file: MessageLog | Egress) -> None:
        """Make a log or an egress durable in the background."""
        self.background.sync(self.asker, ticket, file)

    def fetch(self, ticket: Ticket, key: str, digest: str) -> None:
        """Load an object in the background."""
        self.background.fetch(self.asker, ticket, key, digest)

    def delete(self, key: str) -> None:
        """Delete an object in the background."""
        self.background.delete(key)
