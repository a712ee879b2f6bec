"""The loop rings alarms in order, wakes for other threads, and does not wait when there is work."""

import random
import threading
import time

import pytest

from snapline.net.loop import EventLoop


@pytest.fixture
def loop():
    made = EventLoop()
    yield made
    made.close()


def test_thousands_of_alarms_go_off_in_order(loop, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rng = random.Random(7)
    rung: list[tuple[float, int]] = []
    alarms = [(rng.randrange(400) / 8, number) for number in range(5_000)]
    for delay, number in alarms:
        loop.after(delay, lambda each=(delay, number): rung.append(each))
    for step in range(51):
        now[0] = 100.0 + step
        loop.poll(0)
        assert rung == sorted(each for each in alarms if each[0] <= step)
    assert len(rung) == 5_000


def test_no_alarm_goes_off_early_and_alarms_of_one_time_keep_their_order(loop, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rung: list[int] = []
    for number in range(50):
        loop.after(5.0, lambda number=number: rung.append(number))
    now[0] = 104.999
    loop.poll(0)
    assert rung == []
    now[0] = 105.0
    loop.poll(0)
    assert rung == list(range(50))


def test_an_alarm_set_for_at_once_by_an_alarm_does_not_starve_the_rest(loop, monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)  # a clock too coarse to see the time pass
    rung = []

    def again() -> None:
        assert len(rung) < 5
        rung.append("again")
        loop.after(0, again)

    loop.after(0, again)
    loop.poll(0.1)
    assert rung == ["again"]
    loop.poll(0.1)
    assert rung == ["again", "again"]


def test_a_poll_waits_no_longer_than_the_next_alarm_or_its_limit(loop):
    rung = []
    begin = time.monotonic()
    loop.poll(0.02)
    loop.after(0.02, lambda: rung.append(1))
    while not rung:
        loop.poll(60)
    assert 0.04 <= time.monotonic() - begin < 30, "it did not wait for its limit"


def test_another_thread_wakes_a_loop_that_waits_for_ever(loop):
    done: list[int] = []

    def post_later() -> None:
        loop.post(lambda: done.append(threading.get_ident()))

    for count in range(1, 4):  # again and again
        thread = threading.Timer(0.02, post_later)
        thread.start()
        begin = time.monotonic()
        while len(done) < count:
            loop.poll(60)
        thread.join()
        assert time.monotonic() - begin < 60, "nothing but its limit has woken it"
    assert done == [threading.get_ident()] * 3


def test_everything_that_many_threads_post_is_done_once_and_in_each_threads_order(loop):
    done: list[tuple[int, int]] = []

    def work(name: int) -> None:
        for number in range(1_000):
            loop.post(lambda number=number: done.append((name, number)))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    while len(done) < 4_000:
        loop.poll()
    for thread in threads:
        thread.join()
    for name in range(4):
        assert [number for who, number in done if who == name] == list(range(1_000))


def test_what_an_action_posts_is_done_at_the_next_poll_without_waiting(loop):
    done = []
    loop.post(lambda: (done.append(1), loop.post(lambda: done.append(2))))
    loop.poll()
    assert done == [1]
    loop.poll()
    assert done == [1, 2]


def test_what_stands_behind_an_action_that_raises_is_done_at_the_next_poll(loop):
    done = []
    loop.post(lambda: {}["missing"])
    loop.post(lambda: done.append(1))
    with pytest.raises(KeyError):
        loop.poll()
    begin = time.monotonic()
    loop.poll(60)
    assert time.monotonic() - begin < 60
    assert done == [1]


def test_posting_to_a_closed_loop_is_no_error():
    loop = EventLoop()
    loop.close()
    loop.post(lambda: None)
