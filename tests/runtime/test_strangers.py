"""Whoever connects to a port of a run and has no business there disturbs nothing."""

import socket
import threading

from process_slots import run_processes

from snapline.journal.happenings import JobRunning
from snapline.net.handshake import Dialer
from strangers import IDLE, disturb


def test_strangers_at_the_ports_of_driver_and_slots_disturb_nothing(tmp_path):
    threads: list[threading.Thread] = []

    def let_them_in(driver, entry):
        if isinstance(entry.what, JobRunning):
            slots = [
                (member.hello.host, member.hello.port) for member in driver.roster.members.values()
            ]
            for address in (driver.listener.address, *slots):
                threads.append(threading.Thread(target=disturb, args=(address,)))
                threads[-1].start()

    def gone(driver, entry):
        return len(threads) == 3 and not any(thread.is_alive() for thread in threads)

    outcome = run_processes(
        tmp_path, "aligned", duration_ms=2_000, on_event=let_them_in, until=gone
    )
    for thread in threads:
        thread.join()
    assert len(threads) == 3
    assert (outcome.problem, outcome.problems) == (None, [])
    assert (outcome.lost, outcome.complaints) == ([], [])
    refused = outcome.driver.listener.refused
    assert sum(refused.values()) >= IDLE + 4
    assert "the other side does not know the secret of this run" in refused


def test_a_process_that_never_says_who_it_is_is_left_with_the_run(tmp_path):
    """It knows the secret, so it is no stranger; a slot that dies or hangs before it registers is such."""
    found: list[socket.socket] = []

    def come(address, secret):
        sock = socket.create_connection(address, 240)
        dialer = Dialer(secret)
        while dialer.wants:
            sock.sendall(dialer.take(sock.recv(dialer.wants, socket.MSG_WAITALL)))
        found.append(sock)

    threads: list[threading.Thread] = []

    def begin(driver, entry):
        if isinstance(entry.what, JobRunning):
            given = (driver.listener.address, driver.secret)
            threads.append(threading.Thread(target=come, args=given))
            threads[-1].start()

    outcome = run_processes(
        tmp_path,
        "aligned",
        duration_ms=500,
        on_event=begin,
        until=lambda driver, entry: bool(found),
    )
    [thread] = threads
    thread.join()
    with found[0] as sock:
        assert (outcome.problem, outcome.problems) == (None, [])
        sock.settimeout(10)
        assert sock.recv(1) == b""
