"""Old decisions are collected; the end is found all the same, and collected numbers stay refused."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapline.engine.coordinator import ledger
from snapline.engine.coordinator.anchor import Anchor, later_numbers, signposts
from snapline.engine.coordinator.ledger import decision_key, is_superseded, last_number, read_last
from snapline.engine.job import Settings
from snapline.errors import Deposed, ObjectMissing
from snapline.rundir.lines.kept import read_ledger
from snapline.rundir.results import settle
from snapline.storage.memory import MemoryStore
from snapline.storage.memory_output import MemoryOutlet
from written_ledger import Coordinator

EVERY = Settings().whole_every
LONG = 5 * EVERY


def there(store):
    """The numbers of the decisions that a store has."""
    return [n for n in range(1, 2000) if store.has(decision_key(n))]


def test_the_signposts_of_a_number_are_its_leading_bits():
    assert signposts(13) == [8, 12, 13]
    assert signposts(16) == [16]
    assert list(later_numbers(13))[:4] == [14, 16, 32, 64]


@given(st.integers(1, 1 << 20), st.integers(1, 1 << 20))
def test_a_later_number_has_a_signpost_among_those_that_are_looked_at(one, other):
    earlier, later = sorted((one, other))
    if earlier < later:
        assert set(later_numbers(earlier)) & set(signposts(later))


class Bare:
    """A store in which only the existence of decisions counts."""

    def __init__(self):
        self.numbers = set()

    def get(self, key, digest=None):
        if int(key.partition("/")[2]) not in self.numbers:
            raise ObjectMissing(key)
        return b""


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=12), st.data())
def test_whatever_is_decided_and_deleted_between_two_looks_one_finds_the_end(steps, data):
    """Anchors are raised, and any driver deletes by any of them that was ever durable, in any order."""
    store, anchor, doomed, end = Bare(), Anchor(), set(), 1
    store.numbers.add(1)
    for step in steps:
        store.numbers |= set(range(end + 1, end + step + 1))
        end += step
        raised = data.draw(st.integers(anchor.number, end - 1))
        anchor = Anchor(raised, "its digest", anchor.number)
        doomed |= set(anchor.doomed)
        gone = data.draw(st.sets(st.sampled_from(sorted(doomed)))) if doomed else set()
        store.numbers -= gone
        assert last_number(store) == end
        written_late = data.draw(st.sets(st.sampled_from(sorted(doomed)))) if doomed else set()
        store.numbers |= written_late  # by drivers that stood still
        assert last_number(store) == end
        assert all(is_superseded(store, n) for n in range(1, end))
        assert not is_superseded(store, end)


def written(commits, collect=True):
    store, outlet = MemoryStore(), MemoryOutlet()
    coordinator = Coordinator(store, outlet, collect=collect)
    for _ in range(commits):
        coordinator.commit(1)
    return store, outlet, coordinator


def test_a_ledger_keeps_few_decisions_however_long_it_becomes():
    counts = []
    for commits in (LONG, 2 * LONG, 3 * LONG):
        store, _, _ = written(commits)
        counts.append(len(there(store)))
    assert max(counts) < 2 * EVERY + 40


def test_a_resume_reads_the_same_from_a_collected_ledger():
    for commits in range(EVERY - 2, LONG, 7):
        collected, whole = written(commits)[0], written(commits, collect=False)[0]
        assert len(there(whole)) == commits + 1
        assert read_last(collected, "graph-input") == read_last(whole, "graph-input")


def test_the_same_lines_are_kept_by_a_collected_ledger():
    def lines(store):
        place = SimpleNamespace(files=store, identity="")
        return read_ledger(place, SimpleNamespace(options=())).lines

    for commits in range(EVERY - 2, LONG, 7):
        collected, whole = lines(written(commits)[0]), lines(written(commits, collect=False)[0])
        said = [
            [(line.number, line.decision, line.newest) for line in each]
            for each in (collected, whole)
        ]
        assert said[0] == said[1]
        assert [line.number for line in collected] == [commits, commits + 1]


def taken_over(commits):
    """A driver that stands still, while another one takes over and decides so often."""
    store, outlet, still = written(10)
    successor = Coordinator(store, outlet, "second", read_last(store, "graph-input"))
    for _ in range(commits):
        successor.commit(1)
    return store, outlet, still, successor


@pytest.mark.parametrize("commits", [*range(12), EVERY, EVERY + 5, 2 * EVERY, LONG])
def test_a_driver_that_stood_still_is_deposed_however_long_it_was(commits):
    store, outlet, still, successor = taken_over(commits)
    before, public = read_last(store, "graph-input"), outlet.last_published()
    still.commit(0)
    assert still.deposed
    assert read_last(store, "graph-input") == before
    assert outlet.last_published() == public
    successor.commit(1)
    assert not successor.deposed


def test_without_the_second_look_it_would_go_on(monkeypatch):
    _, _, still, _ = taken_over(LONG)
    monkeypatch.setattr(ledger, "is_superseded", lambda store, number: False)
    still.commit(0)
    assert not still.deposed  # so the test above can fail


@pytest.mark.parametrize("pace", [1, 3, 40])
def test_a_driver_that_stood_still_is_deposed_while_others_go_on_deciding(pace):
    """Between any two looks of it, its successor decides and collects."""
    store, _, still, successor = taken_over(LONG)

    class Busy:
        def __init__(self):
            self.looking = False

        def put_if_absent(self, key, data):
            self.looking = True
            return store.put_if_absent(key, data)

        def get(self, key, digest=None):
            for _ in range(pace if self.looking else 0):
                successor.commit(0)
            return store.get(key, digest)

    still.decider.shell.store = Busy()
    still.commit(0)
    assert still.deposed
    assert not successor.deposed


def test_a_reader_that_is_overtaken_by_collections_begins_again():
    store, _, coordinator = written(LONG)
    busy = SimpleNamespace(looks=0)

    def get(key, digest=None):
        busy.looks += 1
        if busy.looks % 50 == 0 and busy.looks < 1000:
            for _ in range(EVERY + 3):
                coordinator.commit(0)
        return store.get(key, digest)

    found = read_last(SimpleNamespace(get=get), "graph-input")
    assert found.number <= coordinator.decider.number
    assert busy.looks > 100


def test_a_verdict_of_a_driver_that_stood_still_is_refused():
    store, outlet, _ = written(10)

    class Slow:
        """A store whose caller stands still just before it writes the last decision."""

        def __getattr__(self, name):
            return getattr(store, name)

        def put_if_absent(self, key, data):
            successor = Coordinator(store, outlet, "second", read_last(store, "graph-input"))
            for _ in range(LONG):
                successor.commit(0)
            return store.put_if_absent(key, data)

    run = SimpleNamespace(store=Slow(), identity="", name="a run", write=None)
    with pytest.raises(Deposed, match="another driver has taken a run over"):
        settle(run, {"verdict": "yes"}, "first")
    assert read_last(store, "graph-input").over == ""


def test_a_successor_goes_on_deleting_what_one_that_died_has_left():
    store, outlet, first = written(0, collect=False)
    while first.decider.anchor.number == 1:
        first.commit(0)
    left = set(first.decider.anchor.doomed) & set(there(store))
    assert left
    successor = Coordinator(store, outlet, "second", read_last(store, "graph-input"))
    for _ in range(EVERY):
        successor.commit(0)
    assert not left & set(there(store))
