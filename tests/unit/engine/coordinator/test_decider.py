"""Decisions: durable first, then public, then acted on; by one coordinator at a time."""

from dataclasses import replace

import pytest

from engine_fakes import A, B, ShellSpy, job, line, meta
from snapline.engine.coordinator.decider import Decider, Intent
from snapline.engine.coordinator.ledger import Held, Manifest, decision_key, decode
from snapline.engine.job import Settings
from snapline.engine.shell import RetryAlarm, Ticket
from snapline.protocols.none import NONE
from snapline.storage.api import Extent


class Scene:
    """A decider, what it asked, and what came of it."""

    def __init__(self, **of_job):
        self.shell = ShellSpy()
        self.decided: list[Intent] = []
        self.deposed = 0
        self.decider = Decider(
            job(**of_job), self.shell, "me", self.decided.append, self._count_deposed
        )

    def _count_deposed(self):
        self.deposed += 1

    def ask(self, intent):
        self.decider.ask(intent)
        return intent

    def written(self):
        """The decision that was asked to be written, and its ticket."""
        [(what, ticket, key, data)] = self.shell.taken()
        assert what == "decide"
        decision = decode(data)
        assert key == decision_key(decision.number)
        return ticket, decision

    def published(self):
        """The manifest that was asked to be published, and its ticket."""
        [(what, ticket, number, extents)] = self.shell.taken()
        assert what == "publish"
        return ticket, Manifest(number, extents)

    def finish(self):
        """Let everything succeed that is under way; the manifests that came out."""
        manifests = []
        while calls := self.shell.taken():
            for what, ticket, *rest in calls:
                if what == "publish":
                    manifests.append(Manifest(*rest))
                self.decider.done(ticket)
        return manifests

    def commit(self, *checkpoints, **intent):
        """Commit a line and let it succeed; the manifests that came out."""
        self.ask(commit(*checkpoints, **intent))
        return self.finish()


def commit(a, b, *, rows=0, epoch=1, **intent):
    """A line at checkpoint `a` of the source and `b` of the sink, which has written so many rows."""
    chains = {
        A: (meta("a", a, epoch=epoch, incarnation=1),) if a else (),
        B: (meta("b", b, epoch=epoch, incarnation=1, position=rows),) if b else (),
    }
    return Intent(chains, epoch, {0: 1}, b"", False, **intent)


def begin(intent, epoch):
    """An epoch that begins at the line of another intent."""
    return replace(intent, epoch=epoch, begins_epoch=True)


def rows(number, start, stop, file="b.e1.i1"):
    return Manifest(number, {B: Extent(file, start, stop)})


# The order.


def test_a_decision_is_durable_before_it_is_published_and_published_before_it_is_acted_on():
    scene = Scene()
    intent = scene.ask(commit(1, 1, rows=5))
    ticket, decision = scene.written()
    assert decision.manifests == (rows(1, 0, 5),)
    assert scene.decided == []
    scene.decider.done(ticket)
    ticket, manifest = scene.published()
    assert manifest == rows(1, 0, 5)
    assert scene.decided == []
    scene.decider.done(ticket)
    assert scene.decided == [intent]
    assert scene.shell.taken() == []


def test_a_line_without_new_output_is_acted_on_as_soon_as_it_is_durable():
    scene = Scene()
    intent = scene.ask(commit(1, 1))
    ticket, decision = scene.written()
    assert decision.manifests == ()
    scene.decider.done(ticket)
    assert scene.decided == [intent]


def test_of_several_commits_that_wait_only_the_last_is_written():
    scene = Scene()
    first = scene.ask(commit(1, 1, rows=5))
    scene.ask(commit(2, 2, rows=6))
    last = scene.ask(commit(3, 3, rows=9))
    assert scene.finish() == [rows(1, 0, 5), rows(2, 5, 9)]
    assert scene.decided == [first, last]
    assert scene.decider.number == 2


def test_an_epoch_puts_an_end_to_the_commits_that_wait():
    scene = Scene()
    first = scene.ask(commit(1, 1, rows=5))
    scene.ask(commit(2, 2, rows=6))
    epoch = scene.ask(begin(first, 2))
    assert scene.finish() == [rows(1, 0, 5)]
    assert scene.decided == [first, epoch]


def test_a_commit_does_not_displace_an_epoch_that_waits():
    scene = Scene()
    first = scene.ask(commit(1, 1))
    epoch = scene.ask(begin(first, 2))
    later = scene.ask(commit(2, 2, epoch=2))
    scene.finish()
    assert scene.decided == [first, epoch, later]


def test_a_later_epoch_takes_the_place_of_one_that_waits():
    scene = Scene()
    first = scene.ask(commit(1, 1))
    scene.ask(begin(first, 2))
    last = scene.ask(begin(first, 3))
    scene.finish()
    assert scene.decided == [first, last]


# What a decision says.


def test_only_what_changed_is_written_but_everything_once_in_a_while():
    scene, every = Scene(), Settings().whole_every
    for number in range(1, every + 2):
        scene.ask(commit(number, 1))
        ticket, decision = scene.written()
        scene.decider.done(ticket)
        whole = number in (1, every + 1)
        assert decision.number == number
        assert decision.whole is whole
        assert list(decision.chains) == ([A, B] if whole else [A])


def test_output_of_a_protocol_without_checkpoints_is_not_published_by_decisions():
    scene = Scene(protocol=NONE)
    assert scene.commit(1, 1, rows=5) == []


def test_each_row_is_published_once_whatever_life_of_the_sink_wrote_it():
    scene = Scene()
    assert scene.commit(1, 1, rows=5) == [rows(1, 0, 5)]
    scene.ask(begin(commit(1, 1, rows=5), 2))
    assert scene.finish() == []
    assert scene.commit(2, 2, rows=8, epoch=2) == [rows(2, 5, 8, "b.e2.i1")]


# Publishing later.


def test_with_lag_a_line_is_published_when_the_next_one_is_committed():
    scene = Scene(publish_lag=1)
    assert scene.commit(1, 1, rows=5) == []
    assert scene.commit(2, 2, rows=8) == [rows(1, 0, 5)]
    assert scene.commit(3, 3, rows=8) == [rows(2, 5, 8)]


def test_with_a_longer_lag_a_line_is_published_so_many_lines_later_and_damage_may_take_as_many():
    scene = Scene(publish_lag=2, kept_lines=3)
    oldest = commit(1, 1, rows=5)
    scene.ask(oldest)
    assert scene.finish() == []
    assert scene.commit(2, 2, rows=8) == []
    assert scene.commit(3, 3, rows=9) == [rows(1, 0, 5)]
    assert scene.decider.published_line == line(a=1, b=1)
    assert scene.decider.objection(line(a=1, b=1)) is None
    scene.ask(begin(oldest, 2))
    assert scene.finish() == []
    assert scene.decider.held == ()


def test_with_lag_what_is_held_is_part_of_the_decision():
    scene = Scene(publish_lag=1)
    scene.commit(1, 1, rows=5)
    scene.ask(commit(2, 2, rows=8))
    _, decision = scene.written()
    assert decision.held == (Held(line(a=2, b=2), {B: Extent("b.e1.i1", 5, 8)}),)
    assert decision.published == 1


def test_with_lag_a_line_in_which_a_task_has_not_moved_is_not_the_next_one():
    """The line that would remain after damage must not rest on the same snapshot."""
    scene = Scene(publish_lag=1)
    assert scene.commit(1, 1, rows=5) == []
    assert scene.commit(1, 2, rows=6) == []
    assert scene.commit(1, 3, rows=7) == []
    assert scene.commit(2, 4, rows=8) == [rows(1, 0, 5)]
    assert scene.commit(3, 5, rows=9) == [rows(2, 5, 6), rows(3, 6, 7), rows(4, 7, 8)]


def test_at_the_end_everything_that_is_held_is_published():
    scene = Scene(publish_lag=1)
    scene.commit(1, 1, rows=5)
    assert scene.decider.published_line == line(a=0, b=0)
    assert scene.commit(1, 1, rows=5, flush=True) == [rows(1, 0, 5)]
    assert scene.decider.published_line == line(a=1, b=1)


def test_what_was_published_for_an_end_that_a_loss_prevented_is_never_rolled_back_behind():
    scene = Scene(publish_lag=1)
    scene.commit(1, 1, rows=5)
    last = commit(1, 1, rows=5, flush=True)
    scene.ask(last)
    scene.finish()
    scene.ask(begin(replace(last, flush=False), epoch=2))  # a slot died before the job had ended
    scene.finish()
    assert scene.decider.published_line == line(a=1, b=1)
    assert scene.decider.objection(line(a=0, b=0)) is not None


def test_going_back_to_an_older_line_gives_up_what_was_held_of_the_newer():
    """Damage to the newest line costs nothing: its rows come again, from another life."""
    scene = Scene(publish_lag=1)
    older = commit(1, 1, rows=5)
    scene.ask(older)
    scene.finish()
    scene.commit(2, 2, rows=8)
    scene.ask(begin(older, 2))
    assert scene.finish() == []
    assert scene.decider.held == ()
    assert scene.commit(3, 3, rows=7, epoch=2) == []
    assert scene.commit(4, 4, rows=9, epoch=2) == [rows(2, 5, 7, "b.e2.i1")]


def test_no_rollback_may_go_behind_the_line_whose_output_is_public():
    at_once, later = Scene(), Scene(publish_lag=1)
    for scene in (at_once, later):
        scene.commit(1, 1, rows=5)
        scene.commit(2, 2, rows=8)
    assert at_once.decider.published_line == line(a=2, b=2)
    assert later.decider.published_line == line(a=1, b=1)


# After a resume.


@pytest.fixture
def past():
    """The last decision of a coordinator that died before it published manifest 1."""
    scene = Scene(publish_lag=1)
    scene.commit(1, 1, rows=5)
    scene.ask(commit(2, 2, rows=8))
    _, decision = scene.written()
    return replace(decision, whole=True, chains=commit(2, 2, rows=8).chains)


def resumed(past, **of_job):
    scene = Scene(**of_job)
    scene.decider.resume(past)
    return scene


def test_a_resume_publishes_again_what_the_past_may_not_have_published(past):
    """And what it held: the resumed coordinator knows no other line, so it waits for no next one."""
    scene = resumed(past, publish_lag=1)
    scene.ask(begin(commit(2, 2, rows=8), 2))
    assert scene.finish() == [rows(1, 0, 5), rows(2, 5, 8)]
    assert scene.commit(3, 3, rows=9, epoch=2) == []
    assert scene.commit(4, 4, rows=9, epoch=2) == [rows(3, 8, 9, "b.e2.i1")]


def test_what_is_to_be_published_again_is_part_of_the_next_decision(past):
    """Or it would be forgotten if this coordinator died as well, before it has published."""
    scene = resumed(past, publish_lag=1)
    scene.ask(begin(commit(2, 2, rows=8), 2))
    _, decision = scene.written()
    assert (decision.number, decision.published, decision.held) == (3, 2, ())
    assert decision.manifests == (rows(1, 0, 5), rows(2, 5, 8))
    again = resumed(replace(decision, whole=True, chains=past.chains), publish_lag=1)
    again.ask(begin(commit(2, 2, rows=8), 3))
    assert again.finish() == [rows(1, 0, 5), rows(2, 5, 8)]


def test_what_was_published_again_is_not_published_a_third_time(past):
    scene = resumed(past, publish_lag=1)
    scene.ask(begin(commit(2, 2, rows=8), 2))
    scene.finish()
    scene.ask(begin(commit(2, 2, rows=8), 3))
    assert scene.finish() == []


def test_a_resumed_coordinator_without_lag_publishes_what_the_past_held(past):
    scene = resumed(past)
    scene.ask(begin(commit(2, 2, rows=8), 2))
    assert scene.finish() == [rows(1, 0, 5), rows(2, 5, 8)]
    assert scene.commit(3, 3, rows=9, epoch=2) == [rows(3, 8, 9, "b.e2.i1")]


# Failures and other coordinators.


def test_a_failed_write_is_made_again_later_unchanged():
    scene = Scene()
    intent = scene.ask(commit(1, 1))
    [first] = scene.shell.taken()
    ticket = first[1]
    scene.decider.failed(ticket)
    assert scene.shell.taken() == [
        ("set_alarm", RetryAlarm(ticket), scene.decider.job.settings.retry_ms)
    ]
    scene.decider.retry(ticket)
    assert scene.shell.taken() == [first]
    scene.decider.done(ticket)
    assert scene.decided == [intent]


def test_a_failed_publication_is_made_again_and_the_decision_is_not():
    scene = Scene()
    scene.ask(commit(1, 1, rows=5))
    ticket, _ = scene.written()
    scene.decider.done(ticket)
    [publication] = scene.shell.taken()
    scene.decider.failed(publication[1])
    scene.shell.taken()
    scene.decider.retry(publication[1])
    assert scene.shell.taken() == [publication]


def test_an_answer_or_a_retry_of_another_write_changes_nothing():
    scene = Scene()
    scene.ask(commit(1, 1))
    scene.written()
    for stale in (Ticket("decision", 1, None, 9), Ticket("manifest", 1, None, 1)):
        scene.decider.done(stale)
        scene.decider.retry(stale)
    assert scene.shell.taken() == []
    assert scene.decided == []


def test_a_number_that_another_coordinator_took_deposes():
    mine, others = Scene(), Scene()
    others.decider.author = "another"
    for scene in (mine, others):
        scene.ask(commit(1, 1))
    [(_, ticket, _, _)] = mine.shell.taken()
    [(_, _, _, found)] = others.shell.taken()
    mine.decider.conflict(ticket, found)
    assert mine.deposed == 1
    assert mine.decided == []


def test_an_own_write_that_came_through_unnoticed_is_recognised():
    scene = Scene()
    intent = scene.ask(commit(1, 1))
    [(_, ticket, _, data)] = scene.shell.taken()
    scene.decider.conflict(ticket, data)
    assert scene.deposed == 0
    assert scene.decided == [intent]


def test_a_manifest_number_that_is_taken_deposes():
    scene = Scene()
    scene.ask(commit(1, 1, rows=5))
    ticket, _ = scene.written()
    scene.decider.done(ticket)
    ticket, _ = scene.published()
    scene.decider.conflict(ticket, b"")
    assert scene.deposed == 1
    assert scene.decided == []
