"""The verdict on a run, and whether it counts.

`result.json` is what people and programs read. That it is there proves nothing: a driver that was
replaced while it stood still might write one as well. So the verdict is stored under its digest first;
THEN the ledger's next decision names that digest, which only the author of the decision before can
write; THEN `result.json` is written. A driver that lost the race for that decision writes nothing. A
`result.json` that the last decision does not name is ignored by every reader, and where it is missing
or was overwritten the stored verdict takes its place. A decision that follows, because somebody resumed
a run that had ended with a problem, makes the verdict void by itself: nothing needs to be deleted.

Runs of other systems have no ledger. Their `result.json` only carries a digest of itself, as every file of
a run directory does.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from snapline.engine.coordinator.ledger import (
    closing,
    decode,
    encode,
    newest_decision,
    read_line,
    win,
)
from snapline.errors import Deposed, StorageError, StoreUnavailable, UsageError
from snapline.storage.api import Store
from snapline.storage.codec import digest_of

FILE = "result.json"
VERSION = 3
"""The version of `result.json`: raised when a key changes its meaning or goes, and when figures are added,
which are read strictly; not when another key is added."""
SNAPLINE = "snapline"
"""The name that `run.json` has for our own engine among the systems."""
PATIENCE_S = 30.0
"""For how long a store that does not answer is asked again, where nothing else can be done meanwhile."""

Content: TypeAlias = dict[str, Any]
_T = TypeVar("_T")


class SettledRun(Protocol):
    """What a verdict needs of the run directory to which it belongs."""

    @property
    def path(self) -> Path:
        """Where its files are."""
        ...

    @property
    def name(self) -> str:
        """The name of the run."""
        ...

    @property
    def identity(self) -> str:
        """The id that the run's decisions carry; empty if the run has no ledger."""
        ...

    @property
    def store(self) -> Store:
        """Snapshots and decisions, as the processes of the run find them."""
        ...

    @property
    def files(self) -> Store:
        """The same store for readers outside of the run: faults done to it on purpose do not reach them."""
        ...

    def read(self, file: str) -> Content:
        """What a JSON file says."""
        ...

    def write(self, file: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file, durably, whole or not at all."""
        ...


def settle(directory: SettledRun, content: Mapping[str, Any], author: str | None) -> None:
    """Write down that a run is over, and how it went.

    `author` is that of the decisions of the driver that ran it; None: the run has no ledger. Raises Deposed
    if another driver has decided since; then nothing was written.
    """
    if author is not None:
        patiently(lambda: _decide(directory, content, author))
    directory.write(FILE, content)


def check_version(directory: SettledRun, result: Mapping[str, Any]) -> None:
    """Raise UsageError if another version of Snapline has written a result."""
    if result.get("version") != VERSION:
        found = result.get("version")
        written = f"version {found}, and this Snapline reads {VERSION} (docs/history.md)"
        raise UsageError(f"{directory.path / FILE} has {written}")


def _decide(directory: SettledRun, content: Mapping[str, Any], author: str) -> None:
    store = directory.store
    past = read_line(store, directory.identity)
    if past is None:
        return  # nothing was ever decided, so there is no ledger that could name a verdict
    data = canonical(content)
    digest = digest_of(data)
    if past.author != author:
        raise Deposed(f"another driver has taken {directory.name} over, and ends it")
    if past.over == digest:
        return  # an earlier attempt was written, although no answer came
    store.put(_key(digest), data)
    over = encode(closing(past, digest))
    found = win(store, past.number + 1, over)
    if not found or decode(found).over != digest:
        raise Deposed(f"another driver has taken {directory.name} over, and ends it")


def settled(directory: SettledRun) -> tuple[Content | None, str]:
    """The verdict on a run; or None, and a text that says why there is none (it may be empty)."""
    there = (directory.path / FILE).is_file()
    run = directory.identity if _has_ledger(directory) else ""
    try:
        last = newest_decision(directory.files, run) if run else None
    except StorageError as error:
        return None, f"nobody can say whether it is over: {error}"
    if last is None:
        return (directory.read(FILE), "") if there else (None, "")
    if not last.over:
        return None, f"its {FILE} is not that of its last driver, and is ignored" if there else ""
    if there:
        try:
            content = directory.read(FILE)
        except UsageError:
            content = {}
        if digest_of(canonical(content)) == last.over:
            return content, ""
    try:
        kept: Content = json.loads(directory.files.get(_key(last.over), last.over))
    except StorageError as error:
        return None, f"it was over, but its {FILE} is not the one that was written, and {error}"
    return kept, ""


def _has_ledger(directory: SettledRun) -> bool:
    """Whether a run makes decisions: one of another system does not, whoever wrote its history."""
    return bool(directory.read("run.json").get("system", SNAPLINE) == SNAPLINE)


def _key(digest: str) -> str:
    return f"result/{digest}"


def canonical(content: Mapping[str, Any]) -> bytes:
    """The bytes of which the digest of a JSON file is taken: the same for the same content."""
    # As a reader will see it: keys are strings, tuples are lists.
    plain = json.loads(json.dumps(content))
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def patiently(act: Callable[[], _T], tell: Callable[[str], None] = lambda why: None) -> _T:
    """Call `act`, and again while the store does not answer; after `PATIENCE_S` its error is raised."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return act()
        except StoreUnavailable as error:
            if time.monotonic() >= until_s:
                raise
            tell(str(error))
            time.sleep(0.1)
