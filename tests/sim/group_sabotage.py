"""Deliberate bugs in checkpoints by group, entered among the others; q6 has windows by rows."""

from dataclasses import replace

from sabotage import ORACLE, bug, never

from snapline.dataflow.sliding.groups import RowGroups
from snapline.engine.groups.book import GroupBook, GroupChange
from snapline.engine.groups.records import GroupRecords

DELETED = ("kept_groups_are_not_deleted", "kept_groups_are_there")


@bug("aligned", "q6", ORACLE, "OperatorFailed")
def a_group_that_rows_have_joined_is_not_written_again(patch):
    capture = RowGroups.capture

    def forgetful(self, *args, **options):
        known = set(self._numbers)
        groups = capture(self, *args, **options)
        written = {n: rows for n, rows in groups.written.items() if n not in known}
        return replace(groups, written=written)

    patch.setattr(RowGroups, "capture", forgetful)


@bug("aligned", "q6", *DELETED)
def a_group_is_deleted_as_soon_as_it_is_dropped(patch):
    def hasty(self, task, known):
        self._forget(task, list(self.until.get(task, {})))

    patch.setattr(GroupRecords, "collect", hasty)


@bug("uncoordinated", "q6", "no_group_is_left_over")
def groups_are_never_collected(patch):
    never(patch, GroupRecords, "collect")


@bug("uncoordinated", "q6", "no_group_is_left_over", *DELETED)
def what_later_checkpoints_have_dropped_stays_dropped_after_a_rollback(patch):
    never(patch, GroupRecords, "go_back")


@bug("aligned", "q6", *DELETED)
def a_new_coordinator_does_not_ask_which_groups_there_are(patch):
    never(patch, GroupRecords, "adopt")


@bug("bcs", "q6", "counted_groups_are_durable")
def a_snapshot_is_stored_before_its_groups(patch):
    take = GroupBook.take

    def hasty(self, checkpoint, capture):
        change = take(self, checkpoint, capture)
        change.waiting = set()
        return change

    patch.setattr(GroupBook, "take", hasty)


@bug("unaligned", "q6", "no_group_is_left_over")
def groups_of_an_abandoned_checkpoint_are_forgotten(patch):
    never(patch, GroupChange, "follow")
