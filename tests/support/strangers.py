"""Those who connect to a port of a run and have no business there."""

import contextlib
import socket
import struct
import time

from snapline.net.framing import MAGIC, VERSION
from snapline.net.handshake import Dialer, new_secret

IDLE = 10


def disturb(address: tuple[str, int], stay_s: float = 1.0) -> None:
    """Say everything wrong that one can say, and say nothing, for a while."""
    sockets = [socket.create_connection(address, timeout=60) for _ in range(IDLE)]
    for words in (
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        bytes(range(256)) * 64,
        b"\x00" * 63,  # one byte less than an answer to the challenge
        struct.pack("<HBBI", MAGIC, VERSION, 1, 0xFFFFFFFF) * 8,  # a frame of 4 GB
    ):
        sockets.append(socket.create_connection(address, timeout=60))
        with contextlib.suppress(OSError):  # it may have hung up already
            sockets[-1].sendall(words)
    sockets.append(_with_a_wrong_secret(address))
    time.sleep(stay_s)
    for sock in sockets:
        sock.close()


def _with_a_wrong_secret(address: tuple[str, int]) -> socket.socket:
    sock = socket.create_connection(address, timeout=60)
    dialer = Dialer(new_secret())
    challenge = b""
    while len(challenge) < dialer.wants:
        challenge += sock.recv(dialer.wants - len(challenge))
    sock.sendall(dialer.take(challenge))
    assert sock.recv(1) == b"", "whoever does not know the secret hears nothing more"
    return sock
