"""What a run cost, worked out by hand."""

from metric_runs import second
from snapline.core.effects import Commit
from snapline.core.events import SnapshotStored
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import TaskId
from snapline.journal.entry import COORDINATOR, Handled
from snapline.metrics.checkpointing.account import CheckpointAccount
from snapline.metrics.checkpointing.history import Phases
from snapline.metrics.costs import (
    ByteFigures,
    CheckpointSizes,
    CheckpointTimes,
    ResourceFigures,
    StoreRequests,
    byte_figures,
    checkpoint_figures,
    phase_figures,
    resource_figures,
    size_figures,
)
from snapline.metrics.second import Usage, Used, Volume, folded, second_of

A = TaskId("a/0")


def account_of(*stored):
    """The account of checkpoints that were stored at these times, each with a line of its own."""
    account = CheckpointAccount()
    for number, (at_us, fields) in enumerate(stored, start=1):
        commit = Commit(RecoveryLine({A: number}))
        event = SnapshotStored(CheckpointMeta(A, number, **fields))
        account.see(Handled(at_us, COORDINATOR, 1, 0, event, (commit,)))
    return account


def test_bytes_are_told_by_kind_and_in_proportion():
    total = Volume(1_000, 100, 40, 60, 50, 300, 200, 250, 9_999)
    assert byte_figures(total, records=500) == ByteFigures(
        *(1_000, 100, 40, 60, 50, 300, 200, 250, 9_999),
        overhead=0.75,  # 100 + 40 + 60 + 50 + 300 + 200
        message_overhead=0.25,  # 100 + 40 + 60 + 50
        per_record=4.0,  # all kinds; what left for other slots is in them already
    )


def test_where_nothing_was_sent_or_read_nothing_is_in_proportion():
    found = byte_figures(Volume(control=7), records=None)
    assert (found.overhead, found.message_overhead, found.per_record) == (None, None, None)


def test_the_sizes_of_full_snapshots_and_of_deltas_are_apart():
    account = account_of((1, {"bytes": 100}), (2, {"bytes": 10, "parent": 1}), (3, {"bytes": 40}))
    assert size_figures(account) == CheckpointSizes(50.0, 100, 2, 70.0, 1, 10.0)
    assert size_figures(CheckpointAccount()) is None
    assert size_figures(account_of((1, {"bytes": 5}))).delta_mean is None


def test_the_interval_is_the_mean_time_between_lines_and_is_held_against_the_one_that_was_asked_for():
    account = account_of((1_000, {}), (2_000, {}), (7_000, {}))
    found = checkpoint_figures(account, (), asked_ms=4)
    assert (found.interval_ms, found.interval_ratio) == (3.0, 0.75)
    assert checkpoint_figures(account, ()).interval_ratio is None
    alone = checkpoint_figures(account_of((1_000, {})), (), asked_ms=4)
    assert (alone.interval_ms, alone.interval_ratio) == (None, None)


def test_checkpoints_of_a_flow_without_cycles_are_invalid_only_if_they_were_skipped():
    account = account_of((1, {}), (2, {}), (3, {}), (4, {}))
    account.skipped = 1
    found = checkpoint_figures(account, ())
    assert (found.useless, found.invalid_percent) == (0, 25.0)
    assert checkpoint_figures(CheckpointAccount(), ()).invalid_percent is None


def test_where_nobody_can_say_what_is_useless_nobody_can_say_what_is_invalid():
    account = CheckpointAccount(stored=3)
    account.useless.give_up()
    found = checkpoint_figures(account, ())
    assert (found.useless, found.invalid_percent) == (None, None)


def test_every_phase_has_its_mean_its_median_and_its_longest():
    phases = [Phases(0, 1_000 * n, 0, 2_000, 3_000, n) for n in (1, 2, 6)]
    found = phase_figures(phases)
    assert found.start_delay == CheckpointTimes(3.0, 2.0, 6.0)
    assert found.alignment == CheckpointTimes(0.0, 0.0, 0.0)
    assert found.time == CheckpointTimes(8.003, 7.002, 11.006)
    assert found.reporting == CheckpointTimes(0.003, 0.002, 0.006)
    assert phase_figures([]) is None


def used(cpu_us, rss_bytes, **usage):
    return Used(cpu_us, rss_bytes, Usage(**usage))


def test_resources_add_up_over_seconds_and_memory_is_the_highest():
    first, later = second(0), second(1)
    first.add_used("slot/0", used(1_000_000, 50, generator_us=250_000, puts=1, put_bytes=9))
    first.add_used("slot/0", used(500_000, 70, puts=1, put_bytes=1))
    first.add_used("driver", used(10_000, 30, gets=4, get_bytes=8))
    later.add_used("slot/0", used(500_000, 60, log_syncs=3, deletes=2, lists=1))
    expected = ResourceFigures(
        {"driver": 0.01, "slot/0": 2.0},
        {"driver": 30, "slot/0": 70},
        0.25,
        StoreRequests(2, 10, 4, 8, 2, 1),
        3,
    )
    assert resource_figures([first, later]) == expected
    assert resource_figures([folded([first, later])]) == expected
    written = [second_of(0, each.measured()) for each in (first, later)]
    assert resource_figures(written) == expected
