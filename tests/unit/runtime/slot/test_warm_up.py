"""When a slot that was forked from a cold process loads compiled kernels."""

import threading
import time

import pytest

from snapline.errors import UsageError
from snapline.kernels import cache, forms
from snapline.runtime.slot import warm_up
from snapline.runtime.slot.warm_up import WarmUp


@pytest.fixture
def calls(monkeypatch):
    made = []
    monkeypatch.delenv(forms.VARIABLE, raising=False)
    monkeypatch.setattr(forms, "loaded", lambda: False)
    monkeypatch.setattr(cache, "load", lambda: bool(made.append("load")) or True)
    monkeypatch.setattr(cache, "compile_beside", lambda: made.append("compile"))
    monkeypatch.setattr(cache, "compiled_before", lambda: False)
    monkeypatch.setattr(time, "process_time", lambda: warm_up.WORTH_IT_S + 1)
    return made


def finish_threads():
    for thread in threading.enumerate():
        if thread.name == "snapline-kernels":
            thread.join()


def test_a_slot_that_has_hardly_computed_loads_nothing(calls, monkeypatch):
    monkeypatch.setattr(time, "process_time", lambda: warm_up.WORTH_IT_S - 1)
    monkeypatch.setattr(cache, "compiled_before", lambda: True)
    WarmUp().look()
    assert calls == []


def test_what_nobody_has_compiled_is_asked_for_once_and_loaded_once_it_is_there(calls, monkeypatch):
    slot = WarmUp()
    slot.look()
    slot.look()
    assert calls == ["compile"]
    monkeypatch.setattr(cache, "compiled_before", lambda: True)
    slot.look()
    slot.look()
    finish_threads()
    assert calls == ["compile", "load"]


def test_a_slot_whose_parent_has_loaded_does_nothing(calls, monkeypatch):
    monkeypatch.setattr(forms, "loaded", lambda: True)
    monkeypatch.setattr(cache, "compiled_before", lambda: True)
    slot = WarmUp()
    slot.start()
    slot.look()
    assert calls == []


def test_kernels_are_loaded_at_the_start_if_that_is_asked_for(calls, monkeypatch):
    WarmUp().start()
    assert calls == []
    monkeypatch.setenv(forms.VARIABLE, "compiled")
    WarmUp().start()
    assert calls == ["load"]


def test_an_unknown_wish_is_refused(monkeypatch):
    monkeypatch.setenv(forms.VARIABLE, "fast")
    with pytest.raises(
        UsageError, match="SNAPLINE_KERNELS is one of auto, compiled, numpy, not 'fast'"
    ):
        forms.mode()
