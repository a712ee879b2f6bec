"""The page of a real run with a kill, read from the directory that it left."""

from process_slots import committed, run_processes, strike

from snapline.journal.happenings import JobRunning
from snapline.report.page.run_page import run_page
from snapline.report.run.failure_steps import explained_failures
from snapline.runs.finished import reported


def test_a_real_run_is_read_with_its_failure_and_shown(tmp_path):
    seen = {"lines": 0, "kills": 0, "again": 0}

    def kill(driver, entry):
        seen["lines"] += committed(driver, entry)
        if seen["lines"] >= 3 and not seen["kills"]:
            seen["kills"] += 1
            strike(driver, "kill slot=1 at=0ms")

    def over(driver, entry):
        seen["again"] += isinstance(entry.what, JobRunning) and seen["kills"] > 0
        return bool(seen["again"])

    outcome = run_processes(
        tmp_path, "uncoordinated", on_event=kill, until=over, batch=50, journal="full"
    )
    assert outcome.problems == []
    run = reported(outcome.driver.directory)

    assert run.topology is not None
    assert set(run.topology.tasks) == {"bids/0", "bids/1", "results/0", "results/1"}
    assert {channel.source for channel in run.topology.channels} == {"bids/0", "bids/1"}
    (failure,) = explained_failures(run)
    assert [step.name for step in failure.steps][:4] == ["detect", "decide", "launch", "restore"]
    assert failure.rollback is not None
    # What a rollback skipped is skipped, and nothing that was stored when the run began.
    skipped = [row for row in run.checkpoints if row.skipped]
    assert len(skipped) == run.figures.checkpoints.skipped
    assert len(run.checkpoints) == run.figures.checkpoints.stored
    times = [entry.at_us for entry in run.journal]
    assert times == sorted(times)
    page = run_page([run])
    assert 'id="failure-1"' in page
    assert 'id="diagram"' in page
    assert "not over" in page  # nobody has judged it
