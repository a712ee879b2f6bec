"""The options of a run in real slots, and a spec that says what applied."""

from dataclasses import replace

from driver_in_process import PATIENT, SPEC, use_processes
from snapline.journal.entry import Happened
from snapline.journal.happenings import LineDecided, MessagesOvertaken
from snapline.judge.history import journal_entries
from snapline.runs.run import run

OPTIONS = (("align_timeout", 3_600_000), ("batch", 40), ("fused", 0))


def test_a_real_run_is_fused_and_aligned_as_its_options_say(monkeypatch, tmp_path):
    use_processes(monkeypatch)
    spec = replace(SPEC, protocol="unaligned", options=OPTIONS)
    finished = run(spec, runs=tmp_path, timeouts=PATIENT)
    assert finished.verdict.kept == "yes", finished.verdict
    assert finished.spec.options == OPTIONS
    happened = []
    for file in (finished.directory.path / "journal").iterdir():
        entries = journal_entries(finished.directory, file)
        happened += [entry for entry in entries if isinstance(entry, Happened)]
    decided = [entry.what for entry in happened if isinstance(entry.what, LineDecided)]
    operators = {task.rpartition("/")[0] for task in decided[-1].line}
    assert len(operators) > 2, (
        "the source, the sink and what is between them are tasks of their own"
    )
    assert not any(isinstance(entry.what, MessagesOvertaken) for entry in happened)
