"""Frames arrive in order or not at all, whatever the buffers are; a loss is told once."""

import errno
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from transport_pairs import SECRET, Recorder, net, number_of, numbered

import snapline.net.connection
from snapline.net.framing import CONTROL, HEAD, MAGIC, VERSION, Packet, WireError, packet


@pytest.fixture
def world():
    with net() as made:
        yield made


def numbers(recorder):
    return [number_of(body) for body in recorder.bodies]


def shrink(connection):
    """Let the kernel take and give little at a time; much less, and TCP itself waits for ever."""
    connection._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    connection._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)


def fill(connection, first=0):
    """Queue frames until the kernel takes no more; how many there are."""
    count = first
    while not connection._blocked:
        connection.send(numbered(count, 1 << 16), count)
        connection.flush()
        count += 1
    return count


def test_many_frames_go_both_ways_in_order(world):
    one, heard_by_one, two, heard_by_two = world.pair()
    for number in range(20_000):
        one.send(numbered(number))
        two.send(numbered(number + 7))
        if number % 1000 == 0:
            world.loop.poll(0)
    world.until(lambda: len(heard_by_one.bodies) + len(heard_by_two.bodies) == 40_000)
    assert numbers(heard_by_two) == list(range(20_000))
    assert numbers(heard_by_one) == list(range(7, 20_007))
    assert heard_by_two.kinds == [CONTROL] * 20_000


def test_what_is_sent_before_the_connection_is_open_arrives(world):
    one = world.dial(Recorder())
    one.send(numbered(1))
    one.send(numbered(2))
    world.until(lambda: len(world.accepted.bodies) == 2)
    assert numbers(world.accepted) == [1, 2]


def test_frames_of_all_sizes_pass_through_tiny_buffers(world):
    one, heard_by_one, two, heard_by_two = world.pair()
    shrink(one)
    shrink(two)
    rng = random.Random(3)
    sizes = [rng.choice([0, 8, 48, 4096, 8192, 100_000, 300_000]) for _ in range(60)]
    for number, size in enumerate(sizes):
        body = number.to_bytes(8, "little") * (size // 8)
        head = HEAD.pack(MAGIC, VERSION, CONTROL, size)
        third = size // 24 * 8
        pieces = [head, body[:third], b"", body[third:]]
        one.send(Packet(len(head) + size, pieces))
        two.send(numbered(number, 64))
    world.until(lambda: len(heard_by_two.bodies) == 60 and len(heard_by_one.bodies) == 60)
    assert [len(body) for body in heard_by_two.bodies] == sizes
    assert [number_of(body) for body in heard_by_two.bodies if body] == [
        number for number, size in enumerate(sizes) if size
    ]
    assert numbers(heard_by_one) == list(range(60))
    assert one.waiting_bytes == two.waiting_bytes == 0
    one.send(numbered(999))
    world.until(lambda: len(heard_by_two.bodies) == 61)
    assert number_of(heard_by_two.bodies[-1]) == 999


def test_large_frames_arrive_between_small_ones(world):
    one, _, _, heard = world.pair()
    for number in range(6):
        one.send(numbered(number, 10_000_000 if number % 2 else 8))
    world.until(lambda: len(heard.bodies) == 6)
    assert numbers(heard) == list(range(6))
    assert [len(body) for body in heard.bodies] == [8, 10_000_000] * 3


def test_a_frame_of_more_buffers_than_the_kernel_takes_at_once_arrives(world):
    one, _, _, heard = world.pair()
    pieces = [number.to_bytes(8, "little") for number in range(3_000)]
    head = HEAD.pack(MAGIC, VERSION, CONTROL, 8 * len(pieces))
    one.send(numbered(1))
    one.send(Packet(len(head) + 8 * len(pieces), [head, *pieces]))
    one.send(numbered(2))
    world.until(lambda: len(heard.bodies) == 3)
    assert heard.bodies[1] == b"".join(pieces)


def test_a_marker_overtakes_the_messages_of_its_channel_that_have_not_begun_to_leave(world):
    one, _, _, heard = world.pair()
    gone = fill(one)  # these fill the kernel; the last of them may still wait
    for number in range(gone, gone + 10):
        one.send(numbered(number, 1 << 16), number)
    waiting = list(one.queued())
    assert waiting == list(range(waiting[0], gone + 10))
    assert len(waiting) >= 10
    odd = [number for number in waiting if number % 2]
    assert one.overtake(lambda number: number % 2 == 1, numbered(7777), 7777) == odd
    assert list(one.queued()) == [
        each for number in waiting for each in ([7777, number] if number == odd[0] else [number])
    ]
    world.until(lambda: len(heard.bodies) == gone + 11)
    arrived = numbers(heard)
    place = arrived.index(7777)
    assert arrived[place + 1] == odd[0]
    assert arrived[:place] + arrived[place + 1 :] == list(range(gone + 10))


def test_a_frame_that_has_begun_to_leave_is_not_overtaken(world):
    one, _, two, heard = world.pair()
    shrink(one)
    shrink(two)
    one.send(numbered(1, 4_000_000), 1)
    one.flush()
    assert list(one.queued()) == []
    assert one.waiting_bytes > 0
    assert one.overtake(lambda _: True, numbered(2), 2) == []
    world.until(lambda: len(heard.bodies) == 2)
    assert numbers(heard) == [1, 2]


def test_where_nothing_waits_a_marker_overtakes_nothing(world):
    one, _, _, heard = world.pair()
    one.send(numbered(1), 1)
    assert one.overtake(lambda item: item == 5, numbered(2), 2) == []
    world.until(lambda: len(heard.bodies) == 2)
    assert numbers(heard) == [1, 2]


def test_sent_frames_leave_together_when_the_loop_polls(world):
    one, *_ = world.pair()
    for number in range(100):
        one.send(numbered(number), number)
    assert list(one.queued()) == list(range(100))
    world.loop.poll(0)
    assert list(one.queued()) == []


CHILD = """
import socket, sys
from snapline.net.handshake import Dialer
from snapline.net.framing import CONTROL, packet
port, secret = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
sock = socket.create_connection(("127.0.0.1", port))
side = Dialer(secret)
while side.wants:
    sock.sendall(side.take(sock.recv(side.wants, socket.MSG_WAITALL)))
whole = packet(CONTROL, bytes(1 << 20)).buffers[0]
sock.sendall(whole + whole[: 1 << 19])
sys.stdout.write("sent")
sys.stdout.flush()
sock.recv(1)
"""


def test_a_peer_killed_in_the_middle_of_a_frame_is_lost_once_and_disturbs_nobody(world):
    one, _, two, heard = world.pair()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(world.listener.address[1]), SECRET.hex()],
        stdout=subprocess.PIPE,
    )
    world.until(lambda: world.accepted.bodies, limit_s=30)
    assert child.stdout.read(4) == b"sent"
    assert world.accepted.losses == []
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    world.until(lambda: world.accepted.losses)
    doomed = world.accepted.connections[-1]
    doomed.send(numbered(1))
    one.send(numbered(5))
    world.until(lambda: heard.bodies)
    assert world.accepted.losses == [
        "the other side closed the connection in the middle of a frame"
    ]
    assert [len(body) for body in world.accepted.bodies] == [1 << 20]
    assert doomed.closed
    assert not two.closed


def test_a_close_is_told_to_the_other_side_once_and_not_to_the_one_who_closed(world):
    one, ours, two, theirs = world.pair()
    one.send(numbered(1))
    world.until(lambda: theirs.bodies)
    one.close()
    one.close()
    one.send(numbered(2))
    world.until(lambda: theirs.losses)
    two.send(numbered(3))
    world.loop.poll(0)
    assert theirs.losses == ["the other side closed the connection"]
    assert ours.losses == []
    assert numbers(theirs) == [1]


def test_a_reset_is_told_once_also_while_output_waits(world):
    one, ours, two, _ = world.pair()
    fill(one)
    two._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    two.close()
    world.until(lambda: ours.losses)
    one.flush()
    world.loop.poll(0)
    assert len(ours.losses) == 1
    assert "broke" in ours.losses[0]


def test_what_was_said_before_a_connection_broke_is_heard_although_sending_fails_first(
    world, monkeypatch
):
    monkeypatch.setattr(snapline.net.connection, "_LAST_WORDS_S", 0.05)
    one, ours, two, _ = world.pair()
    two.send(numbered(42))
    two.flush()
    two._sock.shutdown(socket.SHUT_RD)
    two.close()
    for number in range(3):  # sending finds out before reading does
        one.send(numbered(number))
        one.flush()
    assert ours.losses == []
    world.until(lambda: ours.losses)
    assert numbers(ours) == [42]
    time.sleep(0.06)
    world.loop.poll(0)  # the alarm that would have told, had reading not
    assert len(ours.losses) == 1


def test_a_connection_on_which_only_sending_fails_is_lost_too(world, monkeypatch):
    monkeypatch.setattr(snapline.net.connection, "_LAST_WORDS_S", 0.05)
    one, ours, _, theirs = world.pair()
    real = one._sock

    class Broken:
        def sendmsg(self, buffers):
            raise OSError(errno.ENOBUFS, "No buffer space available")

        def __getattr__(self, name):
            return getattr(real, name)

    monkeypatch.setattr(one, "_sock", Broken())
    one.send(numbered(1))
    one.flush()
    assert ours.losses == []
    monkeypatch.setattr(one, "_sock", real)
    one.send(numbered(2))  # after a frame that was lost, nothing more may arrive
    world.until(lambda: ours.losses)
    assert ours.losses == ["the connection broke: No buffer space available"]
    world.until(lambda: theirs.losses)
    assert theirs.bodies == []


def test_last_words_arrive_although_the_one_who_leaves_has_unread_input(world):
    one, ours, two, theirs = world.pair()
    for number in range(50):
        two.send(numbered(number, 1 << 14))
    two.flush()  # unread at `one`, which would make an ordinary close a reset
    for number in range(100):
        one.send(numbered(number, 1 << 14))
    one.finish(limit_s=5)
    one.send(numbered(777))
    world.until(lambda: theirs.losses and one.closed)
    assert numbers(theirs) == list(range(100))
    assert theirs.losses == ["the other side closed the connection"]
    assert ours.losses == []


def test_a_farewell_to_someone_who_never_answers_ends_at_its_limit(world):
    sock = world.insider()
    world.until(lambda: world.accepted.connections)
    (connection,) = world.accepted.connections
    connection.finish(limit_s=0.05)
    world.until(lambda: connection.closed)
    assert world.accepted.losses == []
    assert sock.recv(1) == b""


def test_a_receiver_that_does_not_understand_a_frame_ends_the_connection(world):
    one, ours, two, theirs = world.pair()

    def refuse(connection, kind, body):
        raise WireError("what is this?")

    theirs.received = refuse
    one.send(numbered(1))
    one.send(numbered(2))
    world.until(lambda: ours.losses)
    assert theirs.losses == ["what is this?"]
    assert two.closed


def test_garbage_after_the_handshake_ends_that_connection_alone(world):
    one, _, _, heard = world.pair()
    sock = world.insider()
    sock.sendall(packet(CONTROL, b"12345678").buffers[0] + b"GET / HTTP/1.1\r\n\r\n")
    world.until(lambda: world.accepted.losses)
    assert world.accepted.bodies == [b"12345678"]
    assert "begins with" in world.accepted.losses[0]
    one.send(numbered(5))
    world.until(lambda: heard.bodies)
    assert numbers(heard) == [5]


def test_a_receiver_that_closes_in_the_middle_hears_no_more(world):
    one, _, two, theirs = world.pair()
    hear = theirs.received

    def hear_and_close(connection, kind, body):
        hear(connection, kind, body)
        connection.close()

    theirs.received = hear_and_close
    for number in range(10):
        one.send(numbered(number))
    world.until(lambda: two.closed)
    world.loop.poll(0)
    assert numbers(theirs) == [0]
    assert theirs.losses == []


def test_a_frame_of_another_thread_arrives_while_the_loop_stands_still_ahead_of_what_is_queued(
    world,
):
    one, _, _, heard = world.pair()
    one.send(numbered(1))
    thread = threading.Thread(target=one.interject, args=(numbered(2),))
    thread.start()
    thread.join()  # and the loop has not polled
    world.until(lambda: len(heard.bodies) == 2)
    assert numbers(heard) == [2, 1]


def test_the_rest_of_such_a_frame_leaves_before_everything_else(world):
    one, _, _, heard = world.pair()
    whole, sock = numbered(2), one._sock

    class Full:
        """Takes three bytes."""

        def send(self, data):
            return sock.send(data[:3])

    one._sock = Full()
    one.interject(whole)
    one.interject(whole)  # another one would stand in the middle of it
    one._sock = sock
    one.send(numbered(3))
    world.until(lambda: len(heard.bodies) == 2)
    assert numbers(heard) == [2, 3]
    assert one.waiting_bytes == 0


@pytest.mark.parametrize("held_up", ["closed", "full", "stalled", "slow", "cut frame"])
def test_a_frame_of_another_thread_is_not_sent_where_it_would_have_to_wait(world, held_up):
    one, _, _, heard = world.pair()
    if held_up == "closed":
        one.close()
    elif held_up == "stalled":
        one.stall(True)
    elif held_up == "slow":
        one.slow(0.01)
    else:
        shrink(one)
        fill(one)
    if held_up == "cut frame":
        one._blocked = False
        assert one._leaving
    one.interject(numbered(7_777_777))
    one._blocked = held_up in ("full", "cut frame")
    if held_up == "stalled":
        one.stall(False)
    if held_up != "closed":
        one.send(numbered(8_888_888))
        world.until(lambda: numbers(heard)[-1:] == [8_888_888])
    assert 7_777_777 not in numbers(heard)
