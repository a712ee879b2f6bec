"""The proxy over real sockets: it passes everything on, and can be slow, stalled or broken for a time."""

import socket
import threading
import time
from contextlib import closing

import pytest

from snapline.chaos.faults import parse
from snapline.errors import UsageError
from snapline.net.proxy import Proxy

PATIENCE_S = 60


class Echo:
    """Sends back what it is sent, to everybody at once."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = self.server.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with sock:
            try:
                while data := sock.recv(1 << 16):
                    sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                return


@pytest.fixture
def echo():
    made = Echo()
    with closing(made.server):
        yield made


@pytest.fixture
def proxy(echo):
    with Proxy(echo.address) as made:
        yield made


@pytest.fixture
def client(proxy):
    with closing(connect(proxy)) as sock:
        yield sock


def connect(proxy):
    return socket.create_connection(proxy.address, timeout=PATIENCE_S)


def ask(sock, text=b"hello"):
    """Say something, and wait for the answer; how long that took."""
    begun = time.monotonic()
    sock.sendall(text)
    assert hear(sock, len(text)) == text
    return time.monotonic() - begun


def hear(sock, size):
    heard = b""
    while len(heard) < size and (data := sock.recv(size - len(heard))):
        heard += data
    return heard


def test_it_passes_on_what_is_said_and_when_it_ends(client, proxy):
    ask(client)
    client.shutdown(socket.SHUT_WR)
    assert client.recv(10) == b""
    deadline = time.monotonic() + PATIENCE_S
    while proxy.connections and time.monotonic() < deadline:
        time.sleep(0.01)
    assert proxy.connections == 0


def test_much_passes_in_order_while_nobody_reads(client):
    """More than it holds, and more than the kernel does: it waits, and loses nothing."""
    text = bytes(range(256)) * (48 << 12)
    said = threading.Thread(target=lambda: (client.sendall(text), client.shutdown(socket.SHUT_WR)))
    said.start()
    time.sleep(0.3)
    assert hear(client, len(text) + 1) == text
    said.join(PATIENCE_S)


def test_a_slow_proxy_holds_up_both_ways_and_keeps_the_order(client, proxy):
    proxy.slow(0.15)
    assert ask(client) >= 0.3
    client.sendall(b"first,")
    time.sleep(0.02)
    proxy.slow(0)
    client.sendall(b"second")
    assert hear(client, 12) == b"first,second"
    assert min(ask(client) for _ in range(20)) < 0.3


def test_new_connections_are_as_slow(proxy):
    proxy.slow(0.15)
    with closing(connect(proxy)) as sock:
        assert ask(sock) >= 0.3


def test_nothing_passes_a_stalled_proxy_and_afterwards_everything(client, proxy):
    ask(client)
    proxy.stall(True)
    client.sendall(b"later")
    with closing(connect(proxy)) as newcomer:
        newcomer.sendall(b"too")
        for sock in (client, newcomer):
            sock.settimeout(0.15)
            with pytest.raises(TimeoutError):
                sock.recv(1)
            sock.settimeout(PATIENCE_S)
        assert proxy.connections == 1, "nobody is accepted"
        proxy.stall(False)
        assert hear(client, 5) == b"later"
        assert hear(newcomer, 3) == b"too"


def test_connections_break_and_others_can_be_made(client, proxy):
    ask(client)
    proxy.break_all()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert proxy.connections == 0
    with closing(connect(proxy)) as again:
        ask(again)


def test_faults_of_the_grammar_happen_at_their_time_and_end(client, proxy, monkeypatch):
    done = []

    def note(name):
        does = getattr(proxy, name)

        def act(*how):
            done.append((name, *how, time.monotonic() - begun))
            does(*how)

        monkeypatch.setattr(proxy, name, act)

    for name in ("_slow", "_stall", "_break"):
        note(name)
    ask(client)
    begun = time.monotonic()
    proxy.plan(
        parse(
            "delay slot=0 100ms at=0ms for=100ms; cut slot=0 from=coordinator at=200ms for=100ms;"
            "cut slot=0,1 from=2 at=400ms"
        )
    )
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert [each[:-1] for each in done] == [
        ("_slow", 0.1),
        ("_slow", 0.0),
        ("_stall", True),
        ("_stall", False),
        ("_break",),
    ]
    assert all(each[-1] >= at_s for each, at_s in zip(done, (0, 0.1, 0.2, 0.3, 0.4), strict=True))


def test_what_no_network_does_is_refused(proxy):
    with pytest.raises(UsageError, match="only delay and cut, not this: 'kill slot=1 at=1s'"):
        proxy.plan(parse("delay slot=1 1s at=0ms for=1s; kill slot=1 at=1s"))


def test_without_a_target_a_client_is_sent_away():
    with closing(socket.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, so that nobody else gets it, and nobody listens
        with Proxy(nobody.getsockname()[:2]) as proxy:
            # Perhaps at once, while it still greets.
            with pytest.raises(ConnectionResetError), closing(connect(proxy)) as client:
                client.recv(1)
            assert proxy.connections == 0


def test_a_closed_proxy_breaks_its_connections_and_listens_no_more(echo):
    proxy = Proxy(echo.address)
    with closing(connect(proxy)) as client:
        ask(client)
        proxy.stall(True)
        proxy.close()
        proxy.close()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
