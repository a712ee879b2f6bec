"""Who compiles kernels, and how others know that this was done; nothing is compiled here."""

import subprocess

import pytest

from snapline.kernels import cache, forms


@pytest.fixture
def started(tmp_path, monkeypatch):
    """The commands that are started, in a cache of which nothing is known."""
    commands = []
    monkeypatch.setattr(cache, "_mark", lambda: tmp_path / "kernels.compiled")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(command))
    monkeypatch.delenv(forms.VARIABLE, raising=False)
    return commands


def test_a_compiler_is_started_where_nobody_has_compiled(started):
    assert not cache.compiled_before()
    cache.compile_beside()
    assert [command[-1] for command in started] == ["snapline.kernels.cache"]


def test_what_was_compiled_before_is_not_compiled_again(started, tmp_path):
    (tmp_path / "kernels.compiled").touch()
    assert cache.compiled_before()
    cache.compile_beside()
    assert started == []


def test_nobody_compiles_where_numpy_is_asked_for(started, tmp_path, monkeypatch):
    monkeypatch.setenv(forms.VARIABLE, "numpy")
    cache.compile_beside()
    (tmp_path / "kernels.compiled").touch()
    assert not cache.compiled_before()
    assert started == []
