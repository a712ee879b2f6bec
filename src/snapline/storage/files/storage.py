"""All ports in one directory: what a run directory keeps of its run."""

import re
from collections.abc import Callable
from pathlib import Path

from snapline.ids import Epoch
from snapline.storage.api import Ingress, Outlet, Store
from snapline.storage.files.ingress import FileIngress
from snapline.storage.files.log import FileLogs
from snapline.storage.files.outlet import FileOutlet
from snapline.storage.files.output import FileOutput
from snapline.storage.files.places import named_in
from snapline.storage.files.store import FileStore
from snapline.storage.files.trouble import Trouble, TroubledStore

_EPOCH = re.compile(r"\.e(\d+)\.i\d+\.")


class FileStorage:
    """A `Storage` in a directory.

    Every port is made anew when it is asked for and remembers nothing of the others: what they share are
    the files. `open_input` says how stored input is read, which has several formats; `open_outlet` how
    output is written.
    """

    def __init__(
        self,
        directory: Path,
        open_input: Callable[[Path], Ingress] = FileIngress,
        open_outlet: Callable[[Path], Outlet] = FileOutlet,
    ) -> None:
        self._directory = directory
        self._open_input = open_input
        self._open_outlet = open_outlet

    @property
    def store(self) -> Store:
        """The store of snapshots, decisions and verdicts; faults can make it slow, or fail."""
        return TroubledStore(self.untroubled, self.trouble)

    @property
    def untroubled(self) -> FileStore:
        """The same store for readers outside the run, whom faults must not disturb."""
        return FileStore(self._directory / "store", must_exist=True)

    @property
    def trouble(self) -> Trouble:
        """The faults that make the store slow or fail; in an outage its directory is away instead."""
        return Trouble(self._directory / "store.trouble")

    @property
    def logs(self) -> FileLogs:
        """The senders' message logs."""
        return FileLogs(self._directory / "logs")

    @property
    def outlet(self) -> Outlet:
        """The output, for those who write and publish it."""
        return self._open_outlet(self._directory / "output")

    @property
    def output(self) -> FileOutput:
        """The output, for those who read it."""
        return FileOutput(self._directory / "output")

    def ingress(self, name: str) -> Ingress:
        """The stored input of this name."""
        return self._open_input(named_in(self._directory, name))

    def last_epoch(self) -> Epoch:
        """The highest epoch in which a life opened a log or an egress, as the names of files say."""
        files = (*self._directory.glob("output/*.egress"), *self._directory.glob("logs/*.log"))
        found = (_EPOCH.search(path.name) for path in files)
        return max((int(match[1]) for match in found if match), default=0)
