"""The journal of a process on a disk that takes nothing for a while."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from snapline.journal.codec import read
from snapline.journal.entry import Happened
from snapline.journal.happenings import JobStopped
from snapline.rundir.journal_file import JournalFile


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The kernel refuses to make files larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_a_full_disk_does_not_take_is_written_later_and_in_order(tmp_path):
    path = tmp_path / "journal" / "slot-0.1.jsonl"
    journal = JournalFile(path)
    entries = [Happened(n, "slot/0", 1, JobStopped("x" * 50)) for n in range(30)]
    for number, entry in enumerate(entries):
        journal.add(entry)
        if number % 10 == 9:
            with files_of_at_most(50 * number):  # in the middle of an entry
                journal.flush()
            assert path.stat().st_size == 50 * number
    journal.close()
    with path.open() as lines:
        assert list(read(lines)) == entries
