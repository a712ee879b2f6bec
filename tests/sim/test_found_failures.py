"""Runs that once broke a promise, found by sweeps over fresh seeds and made small."""

import pytest

from snapline.sim.case import Case
from snapline.sim.run import simulate

FOUND = {
    # An auction that would have closed after the last record was due closed with the end of the input, when
    # a slot was just away; nobody excused that it was missing, or came again.
    "a slot that is away at the end of the input": (
        Case("partial", "q6", 11, guarantee="bounded-loss", faults="kill slot=1 at=2200ms"),
        Case("partial", "q6", 5, guarantee="bounded-loss", faults="kill slot=1 at=2500ms"),
    ),
    # A slot that was lost before the job ran for the first time began at the present, and nobody said that
    # it had lost what was due before.
    "a slot that is lost before the job runs": (
        Case(
            "partial",
            "fab",
            118,
            records=1,
            faults="cut slot=2 from=0 at=207ms",
            pools=(("polish-tests", 2),),
            guarantee="bounded-loss",
        ),
    ),
    # A marker that overtook output counted messages of the epoch before, which a slow link still held.
    "messages of a former epoch on a slow link": (
        Case("unaligned", "mst", 618504635, records=60, faults="kill slot=2 at=1683ms"),
        Case(
            "unaligned",
            "nhop",
            500014430,
            records=60,
            faults="kill slot=0 at=1790ms; kill slot=1 at=1682ms",
        ),
    ),
    # A slot that could not read several checkpoints was told to restore several times, and opened its
    # output twice: its coordinator, a zombie, looked for what another one had deleted.
    "several checkpoints that cannot be read": (
        Case(
            "partial",
            "q7",
            15,
            guarantee="bounded-loss",
            faults="kill slot=1 step=166; pause coordinator at=476ms for=296ms",
            pools=(("highest-per-auction", 2),),
        ),
    ),
    # A bid that came soon after its source was back was late for its window, and nothing excused that.
    "late behind a slot that was away": (
        Case(
            "partial",
            "q12",
            13,
            guarantee="bounded-loss",
            faults="kill slot=1 at=1s",
            save=(("count", "200ms"), ("bids", "200ms")),
        ),
    ),
    # A checkpoint was damaged while the slot that needed it was away, and that counted as no damage.
    "damage to a checkpoint of a slot that is away": (
        Case(
            "partial",
            "abs",
            184,
            records=59,
            guarantee="bounded-loss",
            faults="kill slot=0 step=210; damage slot=0 at=1060ms",
        ),
        Case(
            "partial",
            "sst",
            180,
            slots=2,
            records=12,
            guarantee="bounded-loss",
            faults="kill coordinator at=1828ms for=157ms; damage slot=1 at=1987ms",
        ),
    ),
    # A window closed before the judge thought it could: a source that has read a record knows when the next
    # one comes, and says so.
    "a window that closes just before a slot is back": (
        Case(
            "partial",
            "mst",
            113,
            guarantee="bounded-loss",
            faults="kill slot=4 at=1229ms",
            pools=(("join", 1), ("count", 2)),
        ),
    ),
    # A task that restarted alone told the time of its checkpoint. Another one, which restarted after it,
    # took that for the present, and put a window out that its life before had put out.
    "the time of a checkpoint taken for the present": (
        Case(
            "partial",
            "mst",
            115,
            records=59,
            guarantee="bounded-loss",
            faults="kill slot=2 at=1056ms; kill slot=1,2 on=recovery",
        ),
    ),
    # Records that were kept came again to a model that had gone back, and it predicted their lot again.
    "a lot whose records come again": (
        Case(
            "partial",
            "fab",
            1,
            guarantee="bounded-loss",
            faults="kill slot=0,2 at=1859ms; store slow 26ms at=1483ms for=326ms",
        ),
    ),
    # A decision was under way that gives the last readable checkpoint up, and the watch expected it.
    # Then groups of rows were left over of a task that could read no checkpoint, and began empty.
    "no checkpoint that can be read": (
        Case(
            "partial",
            "sjoin",
            128,
            records=30,
            guarantee="bounded-loss",
            faults="kill slot=2 at=1486ms; kill slot=0 on=recovery; damage slot=0 at=1370ms",
        ),
        Case(
            "partial",
            "q6",
            122,
            guarantee="bounded-loss",
            faults="kill slot=0 at=1763ms; kill executor=0 at=1242ms; damage slot=0 at=1762ms; "
            "cut slot=0 from=1 at=1935ms for=403ms; kill slot=0,1 at=959ms",
        ),
        Case(
            "partial",
            "fab",
            131,
            guarantee="bounded-loss",
            faults="kill slot=1 at=1846ms; damage slot=1 at=1846ms",
        ),
    ),
    # A slot was lost again while all were restored after a resume. It was restored before another one, and
    # was never told to send that one again what is kept for it.
    "lost again while all are restored": (
        Case(
            "partial",
            "sjoin",
            190,
            guarantee="bounded-loss",
            faults="kill slot=1 at=1657ms; pause coordinator at=1373ms for=126ms",
        ),
    ),
    # Two slots restarted at once. One was told that the other was away when it had heard from its next life
    # already, took that for words of the dead, and the run never ended.
    "two that restart, and hear of each other late": (
        Case(
            "partial",
            "sjoin",
            197,
            guarantee="bounded-loss",
            faults="kill slot=1 at=1284ms; kill slot=1 at=1326ms for=615ms; "
            "kill slot=1,2 at=2118ms for=475ms",
        ),
    ),
    # A slot died once more before it was let go, unnoticed: the loss declared later had no fault behind it.
    "killed again before it is let go": (
        Case(
            "partial",
            "reachability",
            12,
            records=7,
            guarantee="bounded-loss",
            faults="delay slot=0 34ms at=351ms for=637ms; kill slot=2 at=799ms for=124ms; "
            "kill slot=2 at=1008ms",
            pools=(("deletions", 1),),
        ),
    ),
    # A life that was given up took a message when its next life was let go already, and nobody knew which.
    "a zombie beside its next life": (
        Case(
            "partial",
            "fab",
            15,
            records=28,
            guarantee="bounded-loss",
            faults="kill slot=0 step=626; pause slot=0 at=1887ms for=273ms",
        ),
    ),
    # After a resume all tasks go back, so one of them may also go back further than what was decided.
    "damage that a resume finds": (
        Case(
            "partial",
            "counting",
            4,
            guarantee="bounded-loss",
            faults="pause coordinator at=1638ms for=1ms; damage slot=0 at=1483ms",
        ),
    ),
    # Before windows by rows, lives of a sender number messages apart: one may begin before its receiver
    # has got anything, and what is left of the life before may be taken after its loss.
    "numbers of another life": (
        Case("partial", "fab", 91, guarantee="bounded-loss"),
        Case("partial", "fab", 118, guarantee="bounded-loss"),
    ),
    # A slot is let go and takes what is left of the old life of another one, whose new life has begun by
    # then: the first message of that has a number of its own, too.
    "both ends of a channel are new": (Case("none", "q6", 181, guarantee="bounded-loss"),),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once_stays_mended(name):
    for case in FOUND[name]:
        assert simulate(case).violation is None
