"""Bundles and floors: what counts under a number stays, whoever stands still, dies, or tidies up."""

import json
import os
import random
import shutil
import threading

import pytest

from snapline.errors import ObjectDamaged, ObjectMissing, StoreUnavailable
from snapline.storage.files.store import FileStore
from snapline.storage.streams import manifests as manifests_module
from snapline.storage.streams import upkeep as upkeep_module
from snapline.storage.streams.chain import ChainRefused, StreamChain, read_manifests
from snapline.storage.streams.ingress import StreamIngress
from snapline.storage.streams.manifests import InputDeleted, Manifests
from snapline.storage.streams.upkeep import StreamUpkeep
from written_streams import QUERY, add, made_stream, written

SMALL = 4  # manifests in a bundle, so that few are enough
LATER_MS = 1 << 60


@pytest.fixture(autouse=True)
def small_and_no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    for module in (manifests_module, upkeep_module):
        monkeypatch.setattr(module, "BUNDLE", SMALL)


@pytest.fixture
def chain(tmp_path):
    return made_stream(tmp_path / "bids")


def fill(chain, count):
    """Micro-batches of one row per partition, or of none in one of them now and then."""
    for _ in range(count):
        number = chain.length
        add(chain, [] if number % 5 == 2 else [10 * number], [10 * number + 5])


def tend(place, passed=None):
    upkeep = StreamUpkeep(place)
    upkeep.bundle()
    if passed is not None:
        upkeep.raise_floor(passed, LATER_MS)
    upkeep.tidy()


def names(place, folder):
    return sorted(path.name for path in (place / folder).iterdir())


def test_bundles_replace_files_and_nobody_sees_a_difference(chain):
    fill(chain, 9)
    before = read_manifests(chain.place)
    tend(chain.place)
    assert names(chain.place, "manifests") == ["1-4.obj", "5-8.obj", "9.obj"]
    assert read_manifests(chain.place) == before
    fill(chain, 3)
    chain.seal()
    tend(chain.place)
    assert names(chain.place, "manifests") == ["1-4.obj", "13.obj", "5-8.obj", "9-12.obj"]
    assert [m.number for m in read_manifests(chain.place)] == [*range(1, 14)]
    assert StreamChain(chain.place).sealed


def test_the_last_manifest_stays_in_a_file_of_its_own(chain):
    fill(chain, 8)
    tend(chain.place)
    assert names(chain.place, "manifests") == ["1-4.obj", "5.obj", "6.obj", "7.obj", "8.obj"]


def test_the_floor_passes_only_what_all_partitions_have_passed_and_what_is_old(chain):
    fill(chain, 10)
    upkeep = StreamUpkeep(chain.place)
    everything = chain.last.after.offsets
    upkeep.raise_floor(everything, read_manifests(chain.place)[0].at_ms)
    assert Manifests(chain.place).floor() == 1, "nothing is old enough"
    upkeep.raise_floor((2, 10), LATER_MS)
    assert Manifests(chain.place).floor() == 4, (
        "partition 0 has its first two records in two of three"
    )
    upkeep.raise_floor((8, 6), LATER_MS)
    assert Manifests(chain.place).floor() == 7, "and partition 1 one in each"
    upkeep.raise_floor(everything, LATER_MS)
    assert Manifests(chain.place).floor() == 10, "the last manifest stays"


def test_what_lies_below_the_floor_is_deleted_and_the_rest_is_as_it_was(chain):
    fill(chain, 11)
    before = read_manifests(chain.place)
    tend(chain.place, passed=before[6].before.offsets)
    assert [m.number for m in read_manifests(chain.place)] == [*range(7, 12)]
    assert read_manifests(chain.place) == before[6:]
    assert names(chain.place, "manifests") == ["10.obj", "11.obj", "5-8.obj", "9.obj"]
    assert names(chain.place, "batches") == ["5-8", "9-12"]
    folders = sorted(name[:6] for name in names(chain.place, "batches/5-8"))
    assert folders == ["000006", "000007"]
    with pytest.raises(InputDeleted, match=r"micro-batch 2 .* begins with micro-batch 6"):
        Manifests(chain.place).read(3)


def test_a_floor_within_the_files_that_are_not_bundled_yet_leaves_holes_in_their_bundle(chain):
    fill(chain, 3)
    tend(chain.place, passed=read_manifests(chain.place)[2].before.offsets)
    fill(chain, 4)
    tend(chain.place)
    assert names(chain.place, "manifests") == ["1-4.obj", "5.obj", "6.obj", "7.obj"]
    assert [m.number for m in read_manifests(chain.place)] == [3, 4, 5, 6, 7]
    with pytest.raises(InputDeleted, match="micro-batch 1"):
        Manifests(chain.place).read(2)


def test_a_lower_floor_changes_nothing_and_old_ones_do_not_pile_up(chain):
    fill(chain, 12)
    every = read_manifests(chain.place)
    for number in (4, 7, 10):
        tend(chain.place, passed=every[number - 1].before.offsets)
    assert names(chain.place, "floors") == ["10.obj", "7.obj"]
    Manifests(chain.place).floors.put_if_absent("4", b"{}")  # by somebody who stood still
    tend(chain.place)
    assert read_manifests(chain.place) == every[9:]
    assert names(chain.place, "floors") == ["10.obj", "7.obj"]


def test_a_gap_above_the_floor_is_damage_and_so_is_a_damaged_bundle(chain):
    fill(chain, 11)
    tend(chain.place, passed=read_manifests(chain.place)[1].before.offsets)
    bundle = Manifests(chain.place).own.path("5-8")
    content = bundle.read_bytes()
    bundle.unlink()
    with pytest.raises(ObjectMissing, match=r"5\.obj is gone: manifests behind it"):
        StreamChain(chain.place)
    with pytest.raises(ObjectMissing, match=r"5\.obj is gone: manifests behind it"):
        StreamIngress(chain.place).read(0, 9, 10)
    bundle.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ObjectDamaged, match=r"5-8"):
        read_manifests(chain.place)
    bundle.write_bytes(content)
    tend(chain.place, passed=chain.last.before.offsets)
    for path in (chain.place / "floors").iterdir():
        path.unlink()
    with pytest.raises(ObjectMissing, match=r"1\.obj is gone"):
        StreamChain(chain.place)


# Those who stood still.


def stood_still(chain):
    """A query that has written its rows, looked once more, and stops just before it writes the manifest."""
    late = StreamChain(chain.place)
    folder, segments = written(late, late.length, [777], [778])
    batch = late.length
    refresh, late.refresh = late.refresh, lambda: None

    def goes_on():
        try:
            return late.add(batch, QUERY, folder, segments)
        finally:
            late.refresh = refresh

    return goes_on


@pytest.mark.parametrize("passed", [False, True], ids=["bundled", "deleted"])
def test_a_writer_that_stood_still_for_longer_than_input_is_kept_adds_nothing(chain, passed):
    """Its number is free again, so it wins it."""
    fill(chain, 2)
    goes_on = stood_still(chain)
    fill(chain, 9)
    tend(chain.place, chain.last.before.offsets if passed else None)
    before = read_manifests(chain.place)
    assert not Manifests(chain.place).own.path("3").exists()
    assert not goes_on()
    assert read_manifests(chain.place) == before
    fresh = StreamIngress(chain.place)
    kept = fresh.read(1, before[0].before.offsets[1], 99)["n"].tolist()
    assert kept == [10 * (m.number - 1) + 5 for m in before]
    tend(chain.place)
    assert not Manifests(chain.place).own.path("3").exists(), "what it has left is tidied up"


def test_a_writer_that_has_won_and_then_stood_still_keeps_its_micro_batch(chain):
    """When it looks again its manifest is in a bundle: its folder must not be dropped."""
    fill(chain, 2)
    late = StreamChain(chain.place)
    folder, segments = written(late, 2, [777], [778])
    read = late.manifests.read

    def after_a_while(number):
        late.manifests.read = read
        fill(StreamChain(chain.place), 4)
        tend(chain.place)
        return read(number)

    put = late.manifests.own.put_if_absent

    def won(key, data):
        late.manifests.read = after_a_while
        return put(key, data)

    late.manifests.own.put_if_absent = won
    assert late.add(2, QUERY, folder, segments)
    assert folder.is_dir()
    assert "1-4.obj" in names(chain.place, "manifests")
    assert StreamIngress(chain.place).read(0, 2, 3)["n"].tolist() == [777]


def test_spark_may_repeat_the_last_micro_batch_or_a_query_come_back_after_all_was_deleted(chain):
    early = StreamChain(chain.place)
    fill(chain, 9)
    tend(chain.place, chain.last.before.offsets)
    assert chain.begin(8, QUERY) is None, "the last one, which Spark may repeat"
    for batch in (0, 3, 8):
        assert early.begin(batch, QUERY) is None, "from somebody who has not looked since"
    with pytest.raises(ChainRefused, match="has lost its checkpoint"):
        StreamChain(chain.place).begin(0, "another query")
    with pytest.raises(ChainRefused, match="only 9 of those before it"):
        chain.begin(10, QUERY)
    add(StreamChain(chain.place), [90], [])
    assert [m.number for m in read_manifests(chain.place)] == [9, 10]


def test_leftovers_go_when_a_bundle_is_made_and_when_a_query_starts(chain):
    written(chain, 0, [1], [2])
    fill(chain, 5)
    written(StreamChain(chain.place), 5, [1], [2])
    StreamUpkeep(chain.place).drop_leftovers()
    assert len(names(chain.place, "batches/1-4")) == 5, "in a window that is full nobody looks"
    fill(chain, 1)
    StreamUpkeep(chain.place).drop_leftovers()
    assert len(names(chain.place, "batches/5-8")) == 2
    tend(chain.place)
    assert len(names(chain.place, "batches/1-4")) == 4


# Anything may happen between any two steps.


class Killed(BaseException):
    """The process of an actor is gone."""


class Actor(threading.Thread):
    """Does something, one step at a time: it stops before each, until it is told to go on or to die."""

    def __init__(self, act) -> None:
        super().__init__(daemon=True)
        self.act = act
        self.go, self.stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.dies = self.over = False
        self.next = ""  #: what it does when it goes on
        self.sleeps_until = 0
        self.failure = None
        self.start()
        self.stopped.acquire()

    def run(self) -> None:
        try:
            self.gate("begin")
            self.act()
        except (Killed, ObjectMissing, StoreUnavailable, ChainRefused):
            pass  # who stood still for too long may find nothing any more, and is told so
        except BaseException as error:
            self.failure = error
        self.over = True
        self.stopped.release()

    def gate(self, what) -> None:
        self.next = what
        self.stopped.release()
        self.go.acquire()
        if self.dies:
            raise Killed

    def step(self, *, die=False) -> None:
        self.dies = die
        self.go.release()
        self.stopped.acquire()
        if self.failure is not None:
            raise self.failure


class World:
    """Writers and those who tidy up, in any order of their steps; and what was first under each number."""

    def __init__(self, place, seed, monkeypatch) -> None:
        self.place, self.dice = place, random.Random(seed)
        self.first: dict[int, str] = {}  #: the folder of the manifest that first had a number
        self.again = 0  #: how often a number was won that somebody had before
        self.rows = 0
        self.actors: list[Actor] = []
        made_stream(place)
        self._patch(monkeypatch)

    def _patch(self, monkeypatch) -> None:
        put, unlink = FileStore.put_if_absent, upkeep_module._unlink

        def noted_put(store, key, data):
            gate("put")
            won = put(store, key, data)
            if won and store._directory.name == "manifests" and key.isdecimal():
                self.again += int(key) in self.first
                self.first.setdefault(int(key), json.loads(data)["folder"])
            return won

        def one_by_one(paths):
            for path in paths:
                gate("unlink")
                unlink([path])

        monkeypatch.setattr(FileStore, "put_if_absent", noted_put)
        monkeypatch.setattr(FileStore, "get", gated("get", FileStore.get))
        monkeypatch.setattr(os, "listdir", gated("list", os.listdir))
        monkeypatch.setattr(upkeep_module, "_unlink", one_by_one)
        monkeypatch.setattr(shutil, "rmtree", gated("rmtree", shutil.rmtree))

    def write(self) -> None:
        chain = StreamChain(self.place)
        for _ in range(self.dice.randint(1, 6)):
            self.rows += 1
            batch = chain.length
            if (attempt := written(chain, batch, [self.rows], [self.rows])) is not None:
                added, first = chain.add(batch, QUERY, *attempt), self.first[batch + 1]
                deleted = Manifests(self.place).floor() > batch + 1
                assert added == (first == attempt[0].name) or deleted

    def tend(self) -> None:
        upkeep = StreamUpkeep(self.place)
        for _ in range(2):
            upkeep.bundle()
            passed = self.dice.randint(0, len(self.first) + 1)
            upkeep.raise_floor((passed, passed), LATER_MS)
            upkeep.tidy()

    def step(self, now) -> None:
        """One step of somebody who is awake; writers fall asleep where it matters."""
        self.actors = [actor for actor in self.actors if not actor.over]
        awake = [actor for actor in self.actors if actor.sleeps_until <= now]
        if len(awake) < 3:
            awake.append(Actor(self.dice.choice([self.write, self.write, self.tend])))
            self.actors.append(awake[-1])
        actor = self.dice.choice(awake)
        if actor.next == "put" and not actor.sleeps_until and self.dice.random() < 0.3:
            actor.sleeps_until = now + self.dice.randint(100, 300)
            return
        changes = actor.next not in ("get", "list", "begin")
        actor.step(die=self.dice.random() < 0.004)
        if changes:
            self.check()

    def end(self) -> None:
        for actor in self.actors:
            while not actor.over:
                actor.step()
            self.check()

    def check(self) -> None:
        """A reader that comes now finds the first under each number, from the floor on, with its rows."""
        manifests = Manifests(self.place)
        floor, end = manifests.floor(), max(self.first, default=0)
        manifests.check_no_gap()
        found = list(manifests.since(floor))
        assert [m.number for m in found] == [*range(floor, end + 1)]
        assert [m.folder for m in found] == [self.first[n] for n in range(floor, end + 1)]
        assert all(path.is_file() for m in found for path, _ in m.files(self.place))
        assert [m.before.offsets for m in found] == [(n - 1, n - 1) for n in range(floor, end + 1)]


def gated(what, act):
    def stops_before(*given, **named):
        gate(what)
        return act(*given, **named)

    return stops_before


def gate(what) -> None:
    if isinstance(actor := threading.current_thread(), Actor):
        actor.gate(what)


SEEDS, STEPS = 24, 600


def test_every_reader_sees_what_was_first_under_each_number_from_the_floor_on(
    tmp_path, monkeypatch
):
    """Several write and tidy up at once, step by step in any order; some stand still, some are killed."""
    floors = again = 0
    for seed in range(SEEDS):
        with monkeypatch.context() as patched:
            world = World(tmp_path / str(seed), seed, patched)
            for now in range(STEPS):
                world.step(now)
            world.end()
            again += world.again
            floors += Manifests(world.place).floor()
    assert floors > 2 * SEEDS, "much was deleted"
    assert again > 3, "and writers stood still until their numbers were free again"
