"""How a user's query is fed and hurt, without one: files appear, rounds are found, kills use them up."""

from types import SimpleNamespace

import pytest

from snapline.chaos.faults import parse
from snapline.systems.harness.feeder import PIECE_MS, Feeder
from snapline.systems.own_query.adapter import OwnQuery, Places
from snapline.systems.own_query.check import _interval_ms, _rounds
from snapline.systems.own_query.staged import FileNumbers
from snapline.systems.structured_streaming.files import MicroBatches

KILLS = parse("kill driver on=round; kill driver on=round")


@pytest.fixture
def places(tmp_path):
    here = Places(tmp_path)
    for path in (here.staged, here.input, here.reports):
        path.mkdir()
    for log in ("offsets", "commits"):
        (here.batches.checkpoint / log).mkdir(parents=True)
    return here


@pytest.fixture
def driver():
    return SimpleNamespace(pids=lambda: [70, 71], kill=lambda: [70, 71])


@pytest.fixture
def query(places, driver, monkeypatch):
    """A query whose driver is process 70, and whose kills strike from micro-batch 2 and 5 on."""
    files = [places.staged / name for name in ("a", "b", "c")]
    for file in files:
        file.touch()
    query = OwnQuery(places, None, files, [2, 5])
    monkeypatch.setattr(query, "_supervisor", driver)
    return query


def put_out(places, number, pid=70):
    (places.reports / "written").write_text(f"{pid} {number}")


def commit(places, number):
    (places.batches.checkpoint / "commits" / str(number)).touch()


def test_files_appear_in_their_order_when_they_are_due(query, places):
    feeder = Feeder({"files": FileNumbers(3, 1_000)}, query.input)
    seen = []
    for now_ms in (0, PIECE_MS, 1_000, 2_500):
        feeder.feed(now_ms)
        seen.append(sorted(path.name for path in places.input.iterdir()))
    assert seen == [[], ["a"], ["a", "b"], ["a", "b", "c"]]
    assert feeder.done


def test_a_round_is_a_micro_batch_that_is_put_out_and_not_committed(query, places):
    assert not query.in_round()
    put_out(places, 1)
    assert not query.in_round()  # a kill waits for the third one
    put_out(places, 2)
    assert query.in_round()
    commit(places, 2)
    assert not query.in_round()
    put_out(places, 3)
    assert query.in_round()  # the one that it waited for was missed: the next will do


def test_what_an_earlier_life_has_put_out_is_no_round(query, driver, places):
    put_out(places, 2, pid=69)
    assert not query.in_round()
    put_out(places, 2)
    driver.pids = list  # it is dead
    assert not query.in_round()


def test_only_a_kill_that_waited_for_a_round_uses_it_up(query, places):
    put_out(places, 2)
    query.kill("driver")  # at a time, which happens to be now
    assert query.in_round()
    assert query.kill("driver") == [70, 71]
    assert not query.in_round()
    put_out(places, 5)
    assert query.in_round()


def test_a_seed_decides_where_kills_strike_and_never_in_the_first_micro_batch():
    drawn = {tuple(_rounds(KILLS, seed, 4)) for seed in range(60)}
    assert drawn == {(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a <= b}
    assert _rounds(KILLS, 1, 4) == _rounds(KILLS, 1, 4)
    assert _rounds(KILLS, 1, 1) == [0, 0]  # there is no other
    assert _rounds(parse("kill driver at=2s"), 1, 4) == []


def test_input_comes_until_after_the_last_fault_with_a_time():
    faults = parse("kill driver at=9s; pause driver at=30s for=1s; kill driver on=round")
    assert 30_000 < FileNumbers(4, _interval_ms(faults, 4)).due_ms(0, 3) < 31_000
    assert _interval_ms(KILLS, 4) == PIECE_MS


def test_the_micro_batches_are_read_from_the_checkpoint(places):
    assert places.batches == MicroBatches(places.directory / "checkpoint")
    commit(places, 0)
    assert places.batches.committed == 0
