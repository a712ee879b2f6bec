"""Without checkpoints, a slot that starts again goes on in the present: nothing is read twice."""

from process_slots import run_processes


def test_a_source_that_starts_again_reads_nothing_that_was_read_before(tmp_path):
    outcome = run_processes(
        tmp_path, "none", "kill slot=1 at=1500ms", workload="sst", duration_ms=3_000
    )
    assert (outcome.problem, outcome.lost) == (None, [1])
    kinds = {problem.kind for problem in outcome.problems}
    assert kinds == {"missing"}, outcome.problems
