"""Partial fault tolerance with real processes and real kills: files, sockets and logs instead of memory."""

from process_slots import run_processes, slot_journals

from discarded import records_of
from snapline.ids import INITIAL
from snapline.journal.happenings import JobRunning, MessagesDiscarded, SlotLost, SlotRunning
from snapline.journal.loss_happenings import RowsMissed, StaleRowsDropped, TaskLoss
from snapline.storage.discards.files import FileDiscardStore


def test_a_killed_slot_goes_back_alone_to_what_it_saved(tmp_path):
    outcome = run_processes(
        tmp_path, "partial", "kill slot=1 at=1800ms for=800ms", duration_ms=5_000
    )
    assert outcome.problem is None
    assert [entry.what.slot for entry in outcome.what(SlotLost)] == [1]
    (back,) = outcome.what(SlotRunning)
    assert back.actor == "slot/1"
    assert len(outcome.what(JobRunning)) == 1, "nobody else was let go again"
    losses = {entry.what.task: entry.what for entry in outcome.what(TaskLoss)}
    assert all(task.endswith("/1") for task in losses)
    assert any(loss.checkpoint != INITIAL for loss in losses.values()), "nothing was restored"


def test_what_is_discarded_meanwhile_is_in_files_by_identity(tmp_path):
    faults = "kill slot=1 at=800ms for=2s"
    outcome = run_processes(tmp_path, "partial", faults, duration_ms=5_000, journal="full")
    assert outcome.problem is None
    directory = outcome.driver.directory
    said: dict[str, int] = {}
    for entry in slot_journals(directory):
        if isinstance(entry.what, MessagesDiscarded):
            what = entry.what
            said[what.channel] = said.get(what.channel, 0) + what.records
    written = records_of(FileDiscardStore(directory.path / "discards").read())
    assert sum(said.values()) > 0
    assert written == {channel: records for channel, records in said.items() if records}


def test_a_window_by_rows_forgets_as_many_rows_as_its_sender_says(tmp_path):
    faults = "kill slot=1 at=1800ms for=800ms"
    outcome = run_processes(
        tmp_path, "partial", faults, workload="gjoin", duration_ms=5_000, journal="full"
    )
    assert outcome.problem is None
    missed = {entry.what.channel: entry.what for entry in outcome.what(RowsMissed)}
    (told,) = (what for name, what in missed.items() if name.startswith("stream1/0>"))
    assert not told.estimated
    dropped = [e.what for e in slot_journals(outcome.driver.directory)
               if isinstance(e.what, StaleRowsDropped)]  # fmt: skip
    assert [what.task for what in dropped] == [told.channel.partition(">")[2].partition("#")[0]]
    assert 0 < dropped[0].rows <= told.rows
