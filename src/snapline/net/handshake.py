"""The handshake: both ends of a connection prove to each other that they know the secret of the run.

    acceptor -> dialer    preface, nonce A
    dialer -> acceptor    nonce D, HMAC-SHA256(secret, "dialer" + A + D)
    acceptor -> dialer    HMAC-SHA256(secret, "acceptor" + A + D)

Each side draws its nonce anew, so a recorded handshake proves nothing; each proof names its side, so one
cannot be sent back to where it came from. All sizes are fixed, and nobody reads a byte more than it
waits for. What follows is neither encrypted nor signed: it is for networks in which nobody can write
into somebody else's connection.

Both sides do no input or output themselves: `begin` and `take` return what to send, `wants` says how many
bytes to take next, and 0 means that the other side has proved itself.
"""

import hmac
import secrets
from typing import Final, Protocol

from snapline.net.framing import MAGIC, VERSION, WireError

SECRET_BYTES: Final = 32
_NONCE_BYTES: Final = 32
_PROOF_BYTES: Final = 32
_PREFACE: Final = MAGIC.to_bytes(2, "little") + b"hello" + bytes([VERSION])


def new_secret() -> bytes:
    """Draw the secret of a new run."""
    return secrets.token_bytes(SECRET_BYTES)


class Handshake(Protocol):
    """One side of the exchange."""

    wants: int

    def begin(self) -> bytes:
        """What to send as soon as there is a connection."""
        ...

    def take(self, data: bytes) -> bytes:
        """Take exactly the bytes wanted; what to send next. Raises WireError if they prove nothing."""
        ...


class Acceptor:
    """The side that was connected to."""

    def __init__(self, secret: bytes) -> None:
        self._secret = _checked(secret)
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        self.wants = _NONCE_BYTES + _PROOF_BYTES

    def begin(self) -> bytes:
        """The challenge: who we are, and our nonce."""
        return _PREFACE + self._nonce

    def take(self, data: bytes) -> bytes:
        """Check the dialer's answer; return our own proof."""
        nonces = self._nonce + data[:_NONCE_BYTES]
        if not hmac.compare_digest(data[_NONCE_BYTES:], _proof(self._secret, b"dialer", nonces)):
            raise WireError("the other side does not know the secret of this run")
        self.wants = 0
        return _proof(self._secret, b"acceptor", nonces)


class Dialer:
    """The side that connected."""

    def __init__(self, secret: bytes) -> None:
        self._secret = _checked(secret)
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        self._nonces = b""  #: both, once the challenge has come
        self.wants = len(_PREFACE) + _NONCE_BYTES

    def begin(self) -> bytes:
        """Nothing: the acceptor speaks first."""
        return b""

    def take(self, data: bytes) -> bytes:
        """Take the challenge and return the answer to it; then check the acceptor's proof."""
        if not self._nonces:
            return self._answer(data)
        if not hmac.compare_digest(data, _proof(self._secret, b"acceptor", self._nonces)):
            raise WireError("the other side does not know the secret of this run")
        self.wants = 0
        return b""

    def _answer(self, challenge: bytes) -> bytes:
        if challenge[: len(_PREFACE) - 1] != _PREFACE[:-1]:
            raise WireError("the other side is not Snapline")
        if challenge[: len(_PREFACE)] != _PREFACE:
            version = challenge[len(_PREFACE) - 1]
            raise WireError(f"the other side speaks version {version}, this side {VERSION}")
        self._nonces = challenge[len(_PREFACE) :] + self._nonce
        self.wants = _PROOF_BYTES
        return self._nonce + _proof(self._secret, b"dialer", self._nonces)


def _checked(secret: bytes) -> bytes:
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"the secret of a run has {SECRET_BYTES} bytes, not {len(secret)}")
    return secret


def _proof(secret: bytes, side: bytes, nonces: bytes) -> bytes:
    return hmac.digest(secret, side + nonces, "sha256")
