"""Routing: stable, complete, in order."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen, Words
from snapline.core.topology import Channel
from snapline.dataflow.partition import (
    Broadcast,
    ByKey,
    OneToOne,
    Route,
    Routing,
    split,
    targets_of,
)
from snapline.dataflow.state.hashing import hash_columns
from snapline.ids import ChannelId, TaskId

pytestmark = pytest.mark.usefixtures("both_forms")


def route(routing: Routing, targets: int) -> Route:
    names = [f"a/0>b/{i}" for i in range(targets)]
    channels = [Channel(ChannelId(n), TaskId("a/0"), TaskId(n[4:])) for n in names]
    return Route("out", routing, tuple(channels), timed=False)


@given(st.lists(st.integers(-5, 30), max_size=40), st.integers(1, 5))
def test_every_record_goes_to_one_task_and_keeps_its_order(keys, targets):
    batch = Batch.of(key=np.array(keys, np.int64), n=np.arange(len(keys)), s=[str(k) for k in keys])
    parts = split(route(ByKey(("key",)), targets), batch)
    rows = [row for _, part in parts for row in part.rows()]
    assert sorted(rows, key=lambda row: row[1]) == batch.rows()
    assert all(len(part) for _, part in parts)
    assert all((np.diff(part["n"]) > 0).all() for _, part in parts)
    owners = {key: channel.id for channel, part in parts for key in part["key"].tolist()}
    assert all(owners[key] == c.id for c, part in parts for key in part["key"].tolist())
    order = [channel.id for channel, _ in parts]
    assert order == sorted(order)


@pytest.mark.parametrize("tasks", [2, 5])
def test_large_batches_keep_their_order_too(tasks):
    batch = Batch.of(key=np.arange(3000) % 97, n=np.arange(3000))
    parts = split(route(ByKey(("key",)), tasks), batch)
    assert sum(len(part) for _, part in parts) == 3000
    assert all((np.diff(part["n"]) > 0).all() for _, part in parts)


def test_a_batch_for_one_task_is_not_copied():
    batch = Batch.of(key=[4, 4, 4])
    for target in (route(ByKey(("key",)), 3), route(ByKey(("key",)), 1), route(OneToOne(), 1)):
        ((_, part),) = split(target, batch)
        assert part is batch


def test_broadcast_gives_the_batch_to_every_task():
    batch = Batch.of(key=[1, 2])
    parts = split(route(Broadcast(), 3), batch)
    assert [channel.target for channel, _ in parts] == ["b/0", "b/1", "b/2"]
    assert all(part is batch for _, part in parts)


@pytest.mark.parametrize("routing", [OneToOne(), Broadcast(), ByKey(("key",))])
def test_nothing_is_sent_of_nothing(routing):
    assert not split(route(routing, 2), Batch.of(key=[]))


def test_equal_content_has_an_equal_hash_whatever_the_kind_of_the_column():
    texts = ["b", "", "a", "b", "a longer text, with \0 in it"]
    values = tuple(dict.fromkeys(texts))
    words = Words(np.array([values.index(t) for t in texts], np.int32), values)
    strings = Varlen.of("str", ["skipped", *texts]).slice(1, 6)
    assert hash_columns([words]).tolist() == hash_columns([strings]).tolist()
    small, large = np.array([1, -2], np.int8), np.array([1, -2], np.int64)
    assert hash_columns([small]).tolist() == hash_columns([large]).tolist()
    assert hash_columns([np.array([0.0])]) == hash_columns([np.array([-0.0])])


@given(st.lists(st.text(max_size=5), min_size=2, max_size=20, unique=True))
def test_different_texts_have_different_hashes(texts):
    hashes = hash_columns([Varlen.of("str", texts)]).tolist()
    assert len(set(hashes)) == len(texts)


def test_the_order_of_key_columns_matters():
    a, b = np.array([1]), np.array([2])
    assert hash_columns([a, b]) != hash_columns([b, a])


@pytest.mark.parametrize("stride", [1, 2, 1024, 1 << 33])
@pytest.mark.parametrize("tasks", [2, 3, 7])
def test_keys_spread_evenly(stride, tasks):
    keys = Batch.of(key=np.arange(7000, dtype=np.int64) * stride)
    shares = np.bincount(targets_of(keys, ("key",), tasks), minlength=tasks) * tasks / 7000
    assert shares.min() > 0.85
    assert shares.max() < 1.15


def test_more_tasks_than_a_byte_can_name_are_no_problem():
    keys = Batch.of(key=np.arange(5000))
    targets = targets_of(keys, ("key",), 300)
    assert targets.max() == 299
    parts = split(route(ByKey(("key",)), 300), keys)
    assert sum(len(part) for _, part in parts) == 5000


def test_the_hash_is_the_same_in_every_process():
    """Pinned: a snapshot of one release is read by the next, in another process."""
    program = (
        "from snapline.batch import *; from snapline.dataflow.state.hashing import *;"
        "b = Batch.of(i=[1, -7], s=['x', 'snapline'], f=[0.5, 2.0]);"
        "print([hash_columns([b[c]]).tolist() for c in 'isf'])"
    )
    batch = Batch.of(i=[1, -7], s=["x", "snapline"], f=[0.5, 2.0])
    here = repr([hash_columns([batch[name]]).tolist() for name in "isf"])
    for seed in ("0", "4711"):
        result = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.strip() == here
    assert hash_columns([batch["i"]])[0] == 1728126540103167513
    assert hash_columns([batch["s"]])[1] == 6274594320814913651


def test_columns_of_any_kind_are_told_apart():
    """Text as numpy has it equals a `str` column, and no part of a complex number is left out."""
    text = hash_columns([np.array(["to", "be", ""])])
    assert (text == hash_columns([Varlen.of("str", ["to", "be", ""])])).all()
    complexes = hash_columns([np.array([1 + 2j, 1 + 3j, 2 + 2j])])
    assert len(set(complexes.tolist())) == 3


KEYED = {
    "numbers": (np.arange(-20, 20),),
    "every other number": (np.arange(-40, 40)[::2],),
    "small numbers": (np.arange(-20, 20, dtype=np.int8),),
    "large numbers": (np.arange(40, dtype=np.uint64) + np.uint64((1 << 64) - 41),),
    "fractions": (np.arange(40) / 7,),
    "texts": (Varlen.of("str", [f"key {n % 13}" for n in range(40)]),),
    "words": (Words(np.arange(40, dtype=np.int32) % 13, tuple("abcdefghijklm")),),
    "two columns": (np.arange(40) % 5, Varlen.of("str", [str(n % 3) for n in range(40)])),
}


@pytest.mark.parametrize("columns", KEYED.values(), ids=KEYED)
@pytest.mark.parametrize("tasks", [2, 3])
@pytest.mark.parametrize("together", [1, 2, 40])
def test_a_record_goes_to_the_owner_of_its_key_in_whatever_batch_it_comes(columns, tasks, together):
    names = tuple(f"key{n}" for n in range(len(columns)))
    batch = Batch({**dict(zip(names, columns, strict=True)), "n": np.arange(40)})
    owners = targets_of(batch, names, tasks).tolist()
    found = {
        n: int(channel.target[2:])
        for start in range(0, 40, together)
        for channel, part in split(route(ByKey(names), tasks), batch.slice(start, start + together))
        for n in part["n"].tolist()
    }
    assert found == dict(enumerate(owners))
    assert len(set(owners)) == tasks
