"""The doctor: what is fine is said without advice, what is not with one sentence of it."""

import socket
from functools import partial
from pathlib import Path

import pytest

from snapline.errors import NoJava
from snapline.spark import doctor
from snapline.spark.doctor import Check, checks


def test_every_check_says_what_it_found_and_advises_only_when_something_is_wrong(tmp_path):
    found = checks(tmp_path / "runs" / "not yet")
    names = ["python", "java", "pyspark", "cores", "memory", "disk", "loopback"]
    assert [check.name for check in found] == names
    assert all(check.found for check in found)
    assert [bool(check.advice) for check in found] == [not check.ok for check in found]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("limit", "value", "look"),
    [
        ("PYTHON_MIN", (9, 0), doctor.check_python),
        ("PYSPARK_MAJOR", 3, doctor.check_pyspark),
        ("CORES_MIN", 10**6, doctor.check_cores),
        ("MEMORY_BYTES_MIN", 2**60, doctor.check_memory),
    ],
)
def test_too_little_is_not_ok_and_is_advised_on(monkeypatch, limit, value, look):
    assert look().ok
    monkeypatch.setattr(doctor, limit, value)
    assert not look().ok
    assert look().advice.endswith(".")


def test_a_disk_that_is_full_or_cannot_be_written_is_not_ok(tmp_path, monkeypatch):
    assert doctor.check_disk(tmp_path).ok
    monkeypatch.setattr(doctor, "DISK_BYTES_MIN", 2**60)
    assert "GB free" in doctor.check_disk(tmp_path).found
    assert not doctor.check_disk(tmp_path).ok
    assert "cannot be written" in doctor.check_disk(Path("/proc/runs")).found


def test_no_java_and_no_sockets_are_findings_not_errors(monkeypatch):
    def no_java():
        raise NoJava("get one")

    def no_server(address):
        raise OSError("not permitted")

    monkeypatch.setattr(doctor, "find_java", no_java)
    monkeypatch.setattr(socket, "create_server", no_server)
    assert doctor.check_java() == Check("java", False, "nothing", "get one")
    assert doctor.check_loopback().found == "not permitted"
    assert not doctor.check_loopback().ok


@pytest.mark.spark
def test_the_trial_starts_a_real_slot_and_tells_of_one_that_cannot_work(tmp_path, monkeypatch):
    tried = checks(tmp_path, try_spark=True)[-1]
    assert (tried.name, tried.ok, tried.advice) == ("spark", True, "")
    assert tried.found.startswith("a slot ran on Spark 4.")
    monkeypatch.setattr(doctor, "trial", partial(int, "seven"))
    tried = doctor.check_spark()
    assert not tried.ok
    assert "its code raised" in tried.found
