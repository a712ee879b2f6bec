"""Strangers get nothing: not a frame through, not a place for long, not anybody else's attention."""

import socket
import time

import pytest
from transport_pairs import SECRET, Recorder, net, number_of, numbered

from snapline.errors import UsageError
from snapline.net.framing import CONTROL, packet
from snapline.net.handshake import Dialer
from snapline.net.listener import Listener, dial, is_here
from snapline.net.loop import EventLoop


@pytest.fixture
def world():
    with net(limit_s=60, strangers_max=8) as made:
        yield made


LIMIT_S = 0.2


@pytest.fixture
def impatient(world):
    """The listener has no patience with those who come from now on."""
    world.listener._limit_s = LIMIT_S


@pytest.fixture
def undisturbed(world):
    """Two who talk before, during and after: each of their frames arrives."""
    one, ours, two, theirs = world.pair()
    one.send(numbered(0))
    yield
    one.send(numbered(1))
    two.send(numbered(2))
    world.until(lambda: len(theirs.bodies) == 2 and len(ours.bodies) == 1)
    assert [number_of(body) for body in theirs.bodies] == [0, 1]
    assert [number_of(body) for body in ours.bodies] == [2]
    assert ours.losses == theirs.losses == []
    assert len(world.accepted.connections) == 1
    assert world.accepted.bodies == world.accepted.losses == []


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10, b"\0" * 64, bytes(range(256)) * 4000],
    ids=["http", "zeros", "megabyte"],
)
def test_a_stranger_who_sends_garbage_is_dropped(world, garbage):
    sock = world.stranger()
    sock.setblocking(False)
    sock.send(garbage)
    world.until(lambda: world.listener.refused)
    assert world.listener.refused == {"the other side does not know the secret of this run": 1}
    assert world.dropped(sock)


@pytest.mark.usefixtures("undisturbed")
def test_a_stranger_who_speaks_in_frames_without_a_handshake_is_not_heard(world):
    sock = world.stranger()
    sock.sendall(packet(CONTROL, b"12345678").buffers[0] * 8)
    world.until(lambda: world.listener.refused)
    assert world.dropped(sock)


@pytest.mark.usefixtures("undisturbed", "impatient")
def test_a_stranger_who_says_nothing_is_dropped_after_a_while(world):
    begin = time.monotonic()
    sock = world.stranger()
    assert len(world.hear(sock, 40)) == 40
    world.until(lambda: world.listener.refused)
    assert time.monotonic() - begin >= LIMIT_S
    assert world.listener.refused == {"no handshake within 0.2 s": 1}
    assert world.dropped(sock)


@pytest.mark.usefixtures("undisturbed", "impatient")
def test_a_stranger_who_speaks_byte_by_byte_gets_no_more_time(world):
    sock = world.stranger()
    while not world.listener.refused:
        sock.send(b"x")
        time.sleep(0.01)
        world.loop.poll(0)
    assert world.listener.refused == {"no handshake within 0.2 s": 1}


@pytest.mark.usefixtures("undisturbed")
def test_a_stranger_who_hangs_up_is_forgotten(world):
    world.stranger().close()
    world.until(lambda: world.listener.refused)
    assert world.listener._strangers == {}


@pytest.mark.usefixtures("undisturbed")
def test_someone_with_another_secret_is_dropped_and_learns_that_it_failed(world):
    wrong = Recorder()
    connection = world.dial(wrong, secret=b"w" * 32)
    connection.send(numbered(99))
    world.until(lambda: wrong.losses)
    assert wrong.connections == []
    assert len(wrong.losses) == 1
    assert world.listener.refused == {"the other side does not know the secret of this run": 1}


@pytest.mark.usefixtures("undisturbed")
def test_a_handshake_that_was_overheard_cannot_be_replayed(world):
    with net() as elsewhere:  # same secret, and somebody who listens to what is said there
        insider = elsewhere.stranger()
        side = Dialer(SECRET)
        said = [side.take(elsewhere.hear(insider, side.wants))]
        insider.sendall(said[0])
        elsewhere.until(lambda: elsewhere.accepted.connections)
    sock = world.stranger()
    world.hear(sock, 40)
    sock.sendall(said[0] + packet(CONTROL, b"12345678").buffers[0])
    world.until(lambda: world.listener.refused)
    assert world.dropped(sock)


def test_a_crowd_of_silent_strangers_makes_room_for_those_who_know_the_secret():
    with net(limit_s=60, strangers_max=8) as world:
        crowd = [world.stranger() for _ in range(30)]
        friend = Recorder()
        connection = world.dial(friend)
        connection.send(numbered(3))
        world.until(lambda: world.accepted.bodies)
        assert world.listener.refused == {"too many strangers at once": 23}
        assert len(world.listener._strangers) == 7
        assert world.dropped(crowd[0])


def test_a_dialer_is_told_when_nobody_listens():
    loop, lonely = EventLoop(), Recorder()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # a port on which nobody listens
        connection = dial(loop, taken.getsockname(), SECRET, lonely)
        while not lonely.losses:
            loop.poll()
        loop.poll(0)
    loop.close()
    assert connection.closed
    assert len(lonely.losses) == 1
    assert "refused" in lonely.losses[0]


@pytest.mark.parametrize("address", [("no.such.host.invalid", 80), ("127.0.0.1", 99_999)])
def test_a_dialer_is_told_when_there_is_no_such_address(address):
    loop, lonely = EventLoop(), Recorder()
    dial(loop, address, SECRET, lonely)
    assert lonely.losses == []
    while not lonely.losses:
        loop.poll()
    loop.close()
    assert len(lonely.losses) == 1


def test_a_dialer_gives_up_on_an_acceptor_that_never_speaks():
    loop, lonely = EventLoop(), Recorder()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dial(loop, silent.getsockname(), SECRET, lonely, limit_s=0.05)
        while not lonely.losses:
            loop.poll()
    loop.close()
    assert lonely.losses == ["no handshake within 0.05 s"]


def test_who_has_connected_may_be_given_longer_to_answer():
    """A slot that computes answers late, but its system has taken the connection."""
    loop, lonely = EventLoop(), Recorder()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dial(loop, silent.getsockname(), SECRET, lonely, limit_s=0.01, answer_s=0.2)
        while not lonely.losses:
            loop.poll()
    loop.close()
    assert lonely.losses == ["no handshake within 0.2 s"]


def test_a_dialer_does_not_take_another_server_for_ours():
    loop, lonely = EventLoop(), Recorder()
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = dial(loop, server.getsockname(), SECRET, lonely)
        loop.poll(0.01)
        sock, _ = server.accept()
        with sock:
            sock.sendall(b"SSH-2.0-OpenSSH_9.6 and some more bytes\r\n")
            while not lonely.losses:
                loop.poll()
    loop.close()
    assert lonely.losses == ["the other side is not Snapline"]
    assert connection.closed


def test_a_dialer_that_is_closed_before_it_is_open_says_nothing(world):
    lonely = Recorder()
    world.dial(lonely).close()
    world.loop.poll(0.05)
    world.loop.poll(0.05)
    assert (lonely.losses, lonely.connections) == ([], [])


def test_a_listener_is_on_loopback_unless_told_otherwise(world):
    assert world.listener.address[0] == "127.0.0.1"
    assert world.listener.address[1] > 0
    elsewhere = Listener(world.loop, SECRET, Recorder(), host="127.0.0.2")
    assert elsewhere.address[0] == "127.0.0.2"
    elsewhere.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_everywhere_is_no_address_that_others_could_be_told(world, host):
    with pytest.raises(UsageError, match="name the one at which executors reach"):
        Listener(world.loop, SECRET, Recorder(), host=host)


def test_a_connection_knows_from_which_address_it_goes_out(world):
    one, _, other, _ = world.pair()
    assert one.local_host == other.local_host == "127.0.0.1"


def test_an_address_of_another_machine_is_told_from_our_own():
    assert is_here("127.0.0.1")
    assert is_here("127.0.0.2")
    assert not is_here("203.0.113.1"), "set aside for documentation: nobody has it"


def test_a_port_that_is_taken_is_a_clear_error(world):
    port = world.listener.address[1]
    with pytest.raises(UsageError, match=f"port {port}"):
        Listener(world.loop, SECRET, Recorder(), port=port)


def test_closing_a_listener_keeps_connections_and_drops_strangers(world):
    one, _, _, heard = world.pair()
    sock = world.stranger()
    world.hear(sock, 40)
    world.listener.close()
    assert world.dropped(sock)
    one.send(numbered(1))
    world.until(lambda: heard.bodies)


def test_a_process_without_file_descriptors_accepts_later(world, monkeypatch):
    calls = []

    class Exhausted:
        def accept(self):
            calls.append(1)
            raise OSError(24, "Too many open files")

        def fileno(self):
            return real.fileno()

    real = world.listener._sock
    friend = Recorder()
    world.dial(friend)
    monkeypatch.setattr(world.listener, "_sock", Exhausted())
    begin = time.monotonic()
    world.until(lambda: len(calls) == 3)
    assert time.monotonic() - begin >= 0.2, "it waits before it tries again"
    monkeypatch.setattr(world.listener, "_sock", real)
    world.until(lambda: friend.connections)
