"""Both sides prove that they know the secret, and nothing that was heard before helps anybody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.net.framing import WireError
from snapline.net.handshake import Acceptor, Dialer, new_secret

SECRET = b"s" * 32
OTHER = b"o" * 32


def test_two_who_share_the_secret_know_each_other():
    acceptor, dialer = Acceptor(SECRET), Dialer(SECRET)
    assert dialer.begin() == b""
    answer = dialer.take(acceptor.begin())
    assert len(answer) == acceptor.wants
    proof = acceptor.take(answer)
    assert acceptor.wants == 0
    assert dialer.wants == len(proof)
    assert dialer.take(proof) == b""
    assert dialer.wants == 0


def test_a_dialer_with_another_secret_is_refused():
    acceptor = Acceptor(SECRET)
    answer = Dialer(OTHER).take(acceptor.begin())
    with pytest.raises(WireError, match="secret"):
        acceptor.take(answer)
    assert acceptor.wants


def test_an_acceptor_with_another_secret_is_refused():
    dialer, acceptor = Dialer(SECRET), Acceptor(OTHER)
    dialer.take(acceptor.begin())
    with pytest.raises(WireError, match="secret"):
        dialer.take(b"\0" * dialer.wants)


def test_an_old_answer_proves_nothing_to_a_new_acceptor():
    old = Acceptor(SECRET)
    answer = Dialer(SECRET).take(old.begin())
    old.take(answer)
    with pytest.raises(WireError):
        Acceptor(SECRET).take(answer)


def test_an_old_proof_proves_nothing_to_a_new_dialer():
    old = Acceptor(SECRET)
    challenge = old.begin()
    proof = old.take(Dialer(SECRET).take(challenge))
    dialer = Dialer(SECRET)
    dialer.take(challenge)  # the same challenge again: the dialer's own nonce is new
    with pytest.raises(WireError):
        dialer.take(proof)


def test_a_proof_cannot_be_sent_back_to_its_maker():
    dialer, acceptor = Dialer(SECRET), Acceptor(SECRET)
    answer = dialer.take(acceptor.begin())
    with pytest.raises(WireError):
        dialer.take(answer[32:])


def test_another_program_and_another_version_are_told_apart():
    challenge = Acceptor(SECRET).begin()
    with pytest.raises(WireError, match="not Snapline"):
        Dialer(SECRET).take(b"HTTP/1.1" + challenge[8:])
    with pytest.raises(WireError, match="version 9"):
        Dialer(SECRET).take(challenge[:7] + b"\x09" + challenge[8:])


@given(st.binary(min_size=64, max_size=64))
def test_random_bytes_prove_nothing(data):
    with pytest.raises(WireError):
        Acceptor(SECRET).take(data)
    with pytest.raises(WireError):
        Dialer(SECRET).take(data[:40])


def test_secrets_differ_and_a_short_one_is_no_secret():
    assert new_secret() != new_secret()
    with pytest.raises(ValueError, match="32 bytes"):
        Acceptor(b"")
    with pytest.raises(ValueError, match="32 bytes"):
        Dialer(b"short")
