"""The checkpoints that exist, the chains that they form, and when they cease to exist."""

from dataclasses import replace

import pytest

from engine_fakes import AB, TOPOLOGY, line, meta
from snapline.engine.coordinator.registry import Registry
from snapline.errors import ProtocolViolation
from snapline.ids import first_checkpoint


@pytest.fixture
def registry():
    """Task `a` with a full checkpoint and two deltas on it, then another full one; `b` with two."""
    known = Registry(TOPOLOGY)
    for number, parent in ((1, None), (2, 1), (3, 2), (4, None)):
        known.add(meta("a", number, parent=parent, sent={AB: 10 * number}))
    for number in (1, 2):
        known.add(meta("b", number, received={AB: 9 * number}))
    return known


def numbers(metas):
    return [(meta.task, meta.checkpoint) for meta in metas]


def test_a_chain_is_a_checkpoint_behind_those_of_which_it_is_a_delta(registry):
    assert numbers(registry.chain("a", 3)) == [("a", 1), ("a", 2), ("a", 3)]
    assert numbers(registry.chain("a", 4)) == [("a", 4)]


def test_the_initial_state_has_an_empty_chain(registry):
    assert registry.chains(line(a=4, b=0)) == {"a": (meta("a", 4, sent={AB: 40}),), "b": ()}


def test_asking_for_a_checkpoint_that_does_not_exist_is_a_bug(registry):
    with pytest.raises(ProtocolViolation, match=r"checkpoint 7\.1 of a is needed but not known"):
        registry.chain("a", first_checkpoint(7))


def test_a_chain_whose_base_is_gone_is_a_bug_too(registry):
    del registry.metas["a"][1]
    with pytest.raises(ProtocolViolation, match="of a is needed but not known"):
        registry.chain("a", 3)


def test_an_epoch_leaves_nothing_beyond_its_line(registry):
    assert numbers(registry.drop_beyond(line(a=2, b=1))) == [("a", 3), ("a", 4), ("b", 2)]
    assert {task: list(known) for task, known in registry.metas.items()} == {"a": [1, 2], "b": [1]}


def test_damage_takes_the_deltas_on_top_with_it(registry):
    registry.damage("a", 2)
    assert list(registry.metas["a"]) == [1, 4]


def test_damage_to_what_is_not_known_any_more_takes_nothing(registry):
    registry.damage("a", 9)
    assert list(registry.metas["a"]) == [1, 2, 3, 4]


def test_what_is_older_than_the_older_line_is_collected_but_for_the_bases_of_deltas(registry):
    assert numbers(registry.collect(line(a=3, b=2), line(a=4, b=2)).metas) == [("b", 1)]
    assert numbers(registry.collect(line(a=4, b=2), line(a=4, b=2)).metas) == [
        ("a", 1),
        ("a", 2),
        ("a", 3),
    ]


def test_logs_are_pruned_through_what_the_older_line_received_and_each_only_once(registry):
    assert registry.collect(line(a=3, b=1), line(a=4, b=2)).logs == {AB: 9}
    assert registry.collect(line(a=3, b=1), line(a=4, b=2)).logs == {}
    assert registry.collect(line(a=4, b=2), line(a=4, b=2)).logs == {AB: 18}


def test_the_input_that_all_kept_lines_have_passed_is_that_of_the_oldest(registry):
    for number in (3, 4):
        registry.add(replace(registry.metas["a"][number], offsets={0: 100 * number}))
    registry.collect(line(a=0, b=0), line(a=4, b=2))
    assert registry.passed == {"a": {}, "b": {}}, "the initial state is kept"
    registry.collect(line(a=3, b=1), line(a=4, b=2))
    assert registry.passed == {"a": {0: 300}, "b": {}}
    registry.collect(line(a=4, b=2), line(a=4, b=2))
    assert registry.passed == {"a": {0: 400}, "b": {}}


def test_a_restored_registry_knows_the_chains_of_the_line(registry):
    resumed = Registry(TOPOLOGY)
    resumed.restore(registry.chains(line(a=3, b=2)))
    assert resumed.chains(line(a=3, b=2)) == registry.chains(line(a=3, b=2))
    assert list(resumed.metas["b"]) == [2]


# Rounds that were given up.


def collect_nothing_old(registry):
    return numbers(registry.collect(line(a=0, b=0), line(a=0, b=0)).metas)


def test_an_aborted_checkpoint_goes_once_a_newer_one_is_known(registry):
    registry.abort(2)
    assert collect_nothing_old(registry) == []  # delta 3 of `a` needs it; it is the newest of `b`
    registry.add(meta("b", 3))
    assert collect_nothing_old(registry) == [("b", 2)]


def test_an_aborted_base_goes_with_the_deltas_that_needed_it(registry):
    registry.abort(2)
    registry.abort(3)
    assert collect_nothing_old(registry) == [("a", 2), ("a", 3)]


def test_the_newest_checkpoint_stays_although_aborted_since_a_delta_may_still_come(registry):
    registry.abort(4)
    assert collect_nothing_old(registry) == []
    registry.add(meta("a", 5, parent=4))
    assert collect_nothing_old(registry) == []
    assert numbers(registry.chain("a", 5)) == [("a", 4), ("a", 5)]
