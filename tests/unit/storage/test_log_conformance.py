"""What every message log promises."""

import random
from dataclasses import replace

import pytest

from snapline.errors import ObjectMissing
from snapline.storage.memory import MemoryLogs
from storage_harness import CHANNEL, OTHER, life, message, seqs


def fill(log, first, last, epoch=1, channel=CHANNEL):
    for seq in range(first, last + 1):
        log.append(message(seq, epoch, channel))


def test_a_log_reads_what_it_appended_synced_or_not(logs):
    log = logs.open(life())
    fill(log, 1, 3)
    log.sync()
    fill(log, 4, 5)
    assert seqs(log.read(CHANNEL, after=1, through=5)) == [(2, 1), (3, 1), (4, 1), (5, 1)]
    assert list(log.read(CHANNEL, after=5, through=5)) == []


def test_channels_are_apart(logs):
    log = logs.open(life())
    fill(log, 1, 2)
    fill(log, 1, 1, channel=OTHER)
    assert [m.channel for m in log.read(OTHER, after=0, through=1)] == [OTHER]
    with pytest.raises(ObjectMissing, match=f"message 2 of {OTHER}"):
        log.read(OTHER, after=0, through=2)


def test_what_was_never_logged_is_missing(logs):
    log = logs.open(life())
    fill(log, 2, 3)
    for after, through in ((0, 3), (2, 4)):
        with pytest.raises(ObjectMissing):
            log.read(CHANNEL, after=after, through=through)


def test_the_next_life_reads_what_was_synced_and_nothing_else(logs):
    log = logs.open(life(1))
    fill(log, 1, 3)
    log.sync()
    log.append(message(4))
    logs.crash(life(1))
    successor = logs.open(life(2))
    assert seqs(successor.read(CHANNEL, after=0, through=3)) == [(1, 1), (2, 1), (3, 1)]
    if logs.loses_unsynced:
        with pytest.raises(ObjectMissing):
            successor.read(CHANNEL, after=3, through=4)


def sync_while(log, append):
    """Sync, and let something be appended while the disk works."""
    sync = log.start_sync()
    append()
    sync.wait()
    sync.finish()


def test_a_sync_in_the_background_saves_what_was_appended_before_it(logs):
    log = logs.open(life(1))
    fill(log, 1, 3)
    sync_while(log, lambda: fill(log, 4, 5))
    assert seqs(log.read(CHANNEL, after=0, through=5)) == [(seq, 1) for seq in range(1, 6)]
    fill(log, 6, 6)
    sync_while(log, lambda: log.prune(CHANNEL, through=2))
    logs.crash(life(1))
    successor = logs.open(life(2))
    assert seqs(successor.read(CHANNEL, after=2, through=6)) == [(seq, 1) for seq in range(3, 7)]


def test_syncs_that_overlap_end_in_any_order(logs):
    log = logs.open(life(1))
    fill(log, 1, 3)
    first = log.start_sync()
    fill(log, 4, 6)
    second = log.start_sync()
    for sync in (second, first):
        sync.wait()
    for sync in (second, first):
        sync.finish()
    fill(log, 7, 7)
    log.sync()
    logs.crash(life(1))
    successor = logs.open(life(2))
    assert seqs(successor.read(CHANNEL, after=0, through=7)) == [(seq, 1) for seq in range(1, 8)]


def test_what_a_read_has_found_can_be_read_whatever_is_pruned_meanwhile(logs):
    log = logs.open(life(1))
    fill(log, 1, 6)
    log.sync()
    logs.crash(life(1))
    zombie, successor = logs.open(life(2)), logs.open(life(3))
    mine, theirs = (each.read(CHANNEL, after=0, through=6) for each in (zombie, successor))
    assert (next(mine).seq, next(theirs).seq) == (1, 1)
    successor.prune(CHANNEL, through=6)
    assert seqs(mine) == seqs(theirs) == [(seq, 1) for seq in range(2, 7)]
    with pytest.raises(ObjectMissing):
        successor.read(CHANNEL, after=5, through=6)


def test_others_do_not_see_what_is_not_synced(logs):
    log = logs.open(life(1, operator="bids"))
    log.append(message(1))
    if logs.loses_unsynced:
        with pytest.raises(ObjectMissing):
            logs.open(life(2)).read(CHANNEL, after=0, through=1)


def test_the_highest_epoch_counts_for_each_seq(logs):
    first = logs.open(life(1))
    fill(first, 1, 6)
    first.sync()
    second = logs.open(life(2))
    fill(second, 4, 5, epoch=2)
    assert seqs(second.read(CHANNEL, after=2, through=6)) == [(3, 1), (4, 2), (5, 2), (6, 1)]
    second.sync()
    third = logs.open(life(3))
    assert seqs(third.read(CHANNEL, after=2, through=6)) == [(3, 1), (4, 2), (5, 2), (6, 1)]


def test_the_tenth_epoch_is_higher_than_the_ninth(logs):
    for epoch in (9, 10):
        log = logs.open(life(epoch))
        fill(log, 1, 1, epoch=epoch)
        log.sync()
    assert seqs(logs.open(life(11)).read(CHANNEL, after=0, through=1)) == [(1, 10)]


def test_a_later_incarnation_counts_within_an_epoch(logs):
    for incarnation in (2, 1):
        log = logs.open(life(1, incarnation))
        log.append(replace(message(1), header=b"%d" % incarnation))
        log.sync()
    (found,) = logs.open(life(2)).read(CHANNEL, after=0, through=1)
    assert found.header == b"2"


def test_a_zombie_never_disturbs_its_successor(logs):
    zombie = logs.open(life(1))
    fill(zombie, 1, 3)
    zombie.sync()
    successor = logs.open(life(2))
    fill(successor, 3, 4, epoch=2)
    fill(zombie, 4, 5)
    zombie.sync()
    assert seqs(successor.read(CHANNEL, after=1, through=4)) == [(2, 1), (3, 2), (4, 2)]
    successor.sync()
    fill(zombie, 6, 6)
    zombie.sync()
    third = logs.open(life(3))
    assert seqs(third.read(CHANNEL, after=1, through=4)) == [(2, 1), (3, 2), (4, 2)]


def test_a_zombie_that_opens_late_reads_what_counts(logs):
    successor = logs.open(life(2))
    fill(successor, 1, 2, epoch=2)
    successor.sync()
    zombie = logs.open(life(1))
    fill(zombie, 2, 3)
    for _ in range(2):
        assert seqs(zombie.read(CHANNEL, after=0, through=3)) == [(1, 2), (2, 2), (3, 1)]
        zombie.sync()


def test_what_was_pruned_cannot_be_logged_again(logs):
    log = logs.open(life(1))
    log.prune(CHANNEL, through=2)
    fill(log, 1, 3)
    for _ in range(2):
        with pytest.raises(ObjectMissing):
            log.read(CHANNEL, after=1, through=3)
        assert seqs(log.read(CHANNEL, after=2, through=3)) == [(3, 1)]
        log.sync()


def test_what_was_pruned_is_missing_and_the_rest_is_there(logs):
    log = logs.open(life(1))
    fill(log, 1, 6)
    fill(log, 1, 2, channel=OTHER)
    log.sync()
    log.prune(CHANNEL, through=4)
    with pytest.raises(ObjectMissing):
        log.read(CHANNEL, after=3, through=6)
    assert seqs(log.read(CHANNEL, after=4, through=6)) == [(5, 1), (6, 1)]
    assert seqs(log.read(OTHER, after=0, through=2)) == [(1, 1), (2, 1)]
    assert seqs(logs.open(life(2)).read(CHANNEL, after=4, through=6)) == [(5, 1), (6, 1)]


def test_what_was_synced_is_there_when_the_log_is_closed(logs):
    log = logs.open(life(1))
    fill(log, 1, 6)
    log.sync()
    log.prune(CHANNEL, through=4)
    log.close()
    successor = logs.open(life(2))
    assert seqs(successor.read(CHANNEL, after=4, through=6)) == [(5, 1), (6, 1)]


def test_pruning_less_than_before_brings_nothing_back(logs):
    log = logs.open(life(1))
    fill(log, 1, 4)
    log.prune(CHANNEL, through=3)
    log.prune(CHANNEL, through=1)
    log.sync()
    for after in (0, 2):
        with pytest.raises(ObjectMissing):
            log.read(CHANNEL, after=after, through=4)
    assert seqs(log.read(CHANNEL, after=3, through=4)) == [(4, 1)]


def test_a_new_life_prunes_what_earlier_lives_left(logs):
    first = logs.open(life(1))
    fill(first, 1, 4)
    first.sync()
    logs.crash(life(1))
    second = logs.open(life(2))
    fill(second, 5, 6, epoch=2)
    second.sync()
    second.prune(CHANNEL, through=4)
    with pytest.raises(ObjectMissing):
        second.read(CHANNEL, after=3, through=6)
    assert seqs(second.read(CHANNEL, after=4, through=6)) == [(5, 2), (6, 2)]
    assert seqs(logs.open(life(3)).read(CHANNEL, after=4, through=6)) == [(5, 2), (6, 2)]


def test_the_logs_of_different_tasks_are_apart(logs):
    for operator in ("bids", "bids-more", "bi"):
        log = logs.open(life(1, operator=operator))
        channel = f"{operator}/0>count/0"
        log.append(message(1, channel=channel))
        log.sync()
    for operator in ("bids", "bids-more", "bi"):
        log = logs.open(life(2, operator=operator))
        channel = f"{operator}/0>count/0"
        assert [m.channel for m in log.read(channel, after=0, through=1)] == [channel]
        log.prune(channel, through=1)
        with pytest.raises(ObjectMissing):
            log.read(channel, after=0, through=1)


@pytest.mark.parametrize("seed", range(12))
def test_a_random_history_reads_like_its_model(logs, seed):
    """Model: per seq the newest synced entry; lives come one after the other, some crash."""
    rng = random.Random(seed)
    model: dict[int, int] = {}  # seq -> epoch
    floor = sent = 0
    for epoch in range(1, 7):
        log = logs.open(life(epoch))
        sent = rng.randint(floor, sent)  # the line goes back, but never behind what was pruned
        model = {seq: e for seq, e in model.items() if seq <= sent}
        for _ in range(rng.randint(0, 8)):
            fill(log, sent + 1, last := sent + rng.randint(0, 5), epoch)
            model |= dict.fromkeys(range(sent + 1, last + 1), epoch)
            sent = last
            if rng.random() < 0.3:
                floor = rng.randint(floor, sent)
                log.prune(CHANNEL, through=floor)
            expected = [(seq, model[seq]) for seq in range(floor + 1, sent + 1)]
            assert seqs(log.read(CHANNEL, after=floor, through=sent)) == expected
        log.sync()
        if rng.random() < 0.5:
            logs.crash(life(epoch))


def test_the_memory_form_keeps_no_more_than_what_is_needed():
    logs = MemoryLogs()
    log = logs.open(life())
    for seq in range(1, 100):
        log.append(message(seq))
        if seq % 2:
            log.sync()
        log.prune(CHANNEL, through=seq - 3)
        assert logs.entries(CHANNEL) == min(seq, 3)
    assert logs.entries(OTHER) == 0


def test_a_zombie_cannot_bring_back_what_was_pruned_in_memory():
    logs = MemoryLogs()
    zombie, log = logs.open(life(1)), logs.open(life(2))
    log.prune(CHANNEL, through=3)
    log.prune(CHANNEL, through=1)
    fill(zombie, 2, 3)
    zombie.sync()
    assert logs.entries(CHANNEL) == 0


def test_a_sync_that_is_under_way_at_a_crash_saves_nothing_in_memory():
    logs = MemoryLogs()
    log = logs.open(life(1))
    fill(log, 1, 3)
    sync = log.start_sync()
    sync.wait()
    logs.crash(life(1))
    assert logs.entries(CHANNEL) == 0
    sync.finish()
    log.sync()
    with pytest.raises(ObjectMissing):
        logs.open(life(2)).read(CHANNEL, after=0, through=1)
