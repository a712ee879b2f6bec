"""The ledger: decisions as bytes, found again by probing, put together from what changed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_fakes import AB, A, B, line, meta
from snapline.engine.coordinator.ledger import (
    WINDOW,
    Decision,
    Held,
    Manifest,
    decision_key,
    decode,
    encode,
    last_number,
    read_last,
)
from snapline.errors import ObjectDamaged, ObjectMissing, UsageError
from snapline.storage.api import Extent
from snapline.storage.codec import digest_of
from snapline.storage.memory import MemoryStore


def decision(number, chains, *, whole=False, fingerprint="graph", **fields):
    known = {"manifests": (), "published": 0, **fields}
    return Decision(number, "life 1", fingerprint, 3, {0: 2}, whole, chains, b"memo", **known)


def ledger(*decisions):
    """A store with these decisions, each of which names the one before."""
    store, before = MemoryStore(), ""
    for each in decisions:
        data = encode(replace(each, before=before))
        assert store.put_if_absent(decision_key(each.number), data)
        before = digest_of(data)
    return store


def test_a_decision_comes_back_from_its_bytes_with_everything_in_it():
    base = meta("b", 4, received={AB: 7}, position=9, epoch=2, incarnation=1, digest="d0")
    delta = meta("b", 5, received={AB: 8}, channel_state={AB: (8, 9)}, parent=4, offsets={0: 3})
    full = decision(
        6,
        {A: (), B: (base, delta)},
        whole=True,
        manifests=(Manifest(4, {B: Extent("file", 2, 9)}),),
        published=4,
        held=(Held(line(a=0, b=5), {B: Extent("file", 9, 12)}),),
        run="a run",
        before="the digest of decision 5",
        over="the digest of the verdict",
    )
    assert decode(encode(full)) == full


@given(st.data())
def test_no_byte_of_a_decision_can_change_unnoticed(data):
    said = bytearray(encode(decision(6, {A: (meta("a", 4),)}, published=4)))
    place = data.draw(st.integers(0, len(said) - 1))
    said[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ObjectDamaged):
        decode(bytes(said))
    with pytest.raises(ObjectDamaged):
        decode(bytes(said[:place]))


def test_a_ledger_without_decisions_has_no_past():
    assert last_number(MemoryStore()) == 0
    assert read_last(MemoryStore(), "graph") is None


@pytest.mark.parametrize("count", [*range(1, 18), 31, 32, 33])
def test_the_last_decision_is_found_by_probing(count):
    store = ledger(*(decision(n, {}, whole=n == 1) for n in range(1, count + 1)))
    assert last_number(store) == count


def test_probing_looks_at_few_decisions_of_many():
    class Probed:
        """A store of a thousand decisions that counts the looks."""

        looks = 0

        def get(self, key, digest=None):
            self.looks += 1
            if key > decision_key(1000):
                raise ObjectMissing(key)
            return b""

    store = Probed()
    assert last_number(store) == 1000
    assert store.looks < 25 + WINDOW + 24


def test_the_line_is_put_together_from_what_changed_since_the_last_whole_decision():
    first, second, third = meta("a", 1), meta("b", 2), meta("a", 3)
    past = read_last(
        ledger(
            decision(1, {A: (meta("a", 9),), B: (meta("b", 9),)}, whole=True),
            decision(2, {A: (first,), B: ()}, whole=True),
            decision(3, {B: (second,)}),
            decision(4, {A: (third,)}),
        ),
        "graph",
    )
    assert replace(past, before="") == decision(4, {A: (third,), B: (second,)}, whole=True)


def test_a_run_of_another_dataflow_is_not_resumed():
    store = ledger(decision(1, {}, whole=True, fingerprint="another graph"))
    with pytest.raises(UsageError, match="another dataflow, or with another number of slots"):
        read_last(store, "graph")
