"""The text form of a journal: a header line, then one JSON object per entry.

How a value is written follows from the declared type of the field that holds it (`core.forms`), so the
classes of `core` and of this package are the only description of the format. Every line has the class of
its entry as `type`; bytes are base64; a batch is left out but for its size. Everything keeps its order and
every line is ASCII, so equal journals have equal lines, and equal digests.

A protocol may have commands and timers of its own. Writing need not know them, but reading must: whoever
reads what protocols were told and answered names the protocol of the run.

A process that is killed may leave half a line at the end of its journal: reading ignores it. Anything
else that cannot be read is damage.
"""

import hashlib
import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from snapline.batch import Batch
from snapline.core.events import SHARED_COMMANDS, SHARED_TIMERS, Command, Timer
from snapline.core.forms import NUMBER, Form, Forms, Hint, Json
from snapline.core.protocol import CheckpointProtocol
from snapline.errors import ObjectDamaged, UsageError
from snapline.journal.entry import Entry, Happened

VERSION = 5


class LeftOut(Batch):
    """A batch of which only the size was written down."""

    __slots__ = ("_nbytes",)

    def __init__(self, records: int, nbytes: int) -> None:
        super().__init__({}, records)
        self._nbytes = nbytes

    @property
    def nbytes(self) -> int:
        """The size that the column buffers had."""
        return self._nbytes


def lines(entries: Iterable[Entry]) -> Iterator[str]:
    """The lines of a journal, each with its newline; the first is the header."""
    yield _line({"journal": VERSION})
    for each in entries:
        yield _line(_WRITTEN.write(each))


def digest(entries: Iterable[Entry]) -> str:
    """One number for a whole journal: the SHA-256 of its lines."""
    hasher = hashlib.sha256()
    for line in lines(entries):
        hasher.update(line.encode())
    return hasher.hexdigest()


def read(lines: Iterable[str], protocol: CheckpointProtocol | None = None) -> Iterator[Entry]:
    """Read the entries of a journal from its lines; their messages have a batch without columns.

    `protocol` is the one of the run: a command or timer that only it has cannot be read without it.
    """
    form = _WRITTEN if protocol is None else _form(protocol.all_commands, protocol.all_timers)
    numbered = enumerate(_whole(lines), start=1)
    for _, line in numbered:
        _check_header(line)
        break
    for number, line in numbered:
        yield _entry(form, number, line)


def _line(value: Json) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _whole(lines: Iterable[str]) -> Iterator[str]:
    """All lines but a last one that was cut: it has no newline and does not close its object."""
    held: str | None = None
    for line in lines:
        if held is not None:
            yield held
        held = line
    if held is not None and (held.endswith("\n") or _parses(held)):
        yield held


def _parses(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _check_header(line: str) -> None:
    header = json.loads(line) if _parses(line) else None
    if not isinstance(header, dict) or "journal" not in header:
        raise UsageError("this is not a journal: its first line names no version")
    if header["journal"] != VERSION:
        raise UsageError(
            f"the journal has version {header['journal']}, and this Snapline reads {VERSION}"
        )


def _entry(form: Form, number: int, line: str) -> Entry:
    try:
        back: Entry = form.read(json.loads(line))
    except (ValueError, TypeError, KeyError) as error:
        raise ObjectDamaged(f"line {number} of the journal is damaged: {error!r}") from error
    return back


def json_of(happened: Happened) -> Json:
    """Write something that happened as a JSON object, as a line of a journal has it."""
    return _WRITTEN.write(happened)


def happened_of(written: Json) -> Happened:
    """Read something that happened from its JSON object. Raises ValueError."""
    back = _WRITTEN.read(written)
    if not isinstance(back, Happened):
        raise ValueError(f"a {type(back).__name__} is nothing that happened")
    return back


# The form of entries.


def _write_batch(batch: Batch) -> dict[str, int]:
    return {"records": len(batch), "bytes": batch.nbytes}


_LEAVES: Mapping[Hint, Form] = {
    bytes: Form(lambda value: b2a_base64(value, newline=False).decode(), a2b_base64),
    Batch: Form(_write_batch, lambda size: LeftOut(size["records"], size["bytes"])),
    float: NUMBER,
}


@cache
def _form(commands: tuple[type[Command], ...], timers: tuple[type[Timer], ...]) -> Form:
    """The form of an entry under a protocol that has these commands and timers."""
    families: dict[type, tuple[type, ...]] = {Command: commands, Timer: timers}
    return Forms(_LEAVES, families).of(Entry)


_WRITTEN = _form(SHARED_COMMANDS, SHARED_TIMERS)
