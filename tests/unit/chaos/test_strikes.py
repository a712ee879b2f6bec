"""When a run with faults proves nothing, and the sentence that says why."""

from snapline.chaos.strikes import Strike, vacuous

HIT = Strike("kill slot=0 at=1s", True, 1_000)
MISSED = Strike("kill slot=1 at=60s", False, None)
EARLY = (
    "the last loss came at 300 ms, when there was nothing to lose yet: "
    "the first line (or output) came at 500 ms"
)
SLOW = Strike("delay slot=2 10ms at=1s for=1s", True, 1_000)


def judged(
    *strikes: Strike,
    drawn: bool = False,
    losses: tuple[int, ...] = (),
    line: int | None = 500,
    rows: int = 10,
) -> str | None:
    """The rule, with a run that put something out and committed a line unless a test says otherwise."""
    return vacuous(strikes, drawn=drawn, losses_ms=losses, first_line_ms=line, rows=rows)


def test_a_named_fault_that_never_struck_is_named() -> None:
    assert judged(HIT, MISSED, losses=(1_000,)) == (
        "1 of 2 faults never struck: 'kill slot=1 at=60s'"
    )
    assert judged(MISSED) == "1 of 1 fault never struck: 'kill slot=1 at=60s'"


def test_a_run_without_faults_promised_nothing_about_them_but_must_put_something_out() -> None:
    assert judged() is None
    assert judged(line=None) is None
    assert judged(rows=0) == "the run put out nothing"


def test_output_is_needed_under_faults_too() -> None:
    assert judged(HIT, losses=(1_000,), rows=0) == "the run put out nothing"


def test_losses_count_when_there_was_something_to_lose() -> None:
    assert judged(HIT, losses=(1_000,)) is None
    assert judged(HIT, losses=(100, 1_000)) is None
    assert judged(HIT, losses=(100, 300)) == EARLY
    assert judged(HIT, losses=(300,), line=None) == (
        "processes were lost, but nothing was ever committed that they could have lost"
    )


def test_a_named_fault_that_costs_no_process_proves_something_all_the_same() -> None:
    assert judged(SLOW) is None


def test_drawn_faults_may_miss_but_one_process_must_be_lost_late_enough() -> None:
    assert judged(HIT, MISSED, drawn=True, losses=(1_000,)) is None
    assert judged(SLOW, drawn=True) == "no process was lost, so nothing had to be recovered"
    assert judged(HIT, drawn=True, losses=(300,)) == EARLY
