"""A clock for runs of the toy: nobody waits for it, and no machine is too slow for it."""

from types import SimpleNamespace

import pytest
import toy_system

from snapline.systems.harness import course


@pytest.fixture
def toy_clock(monkeypatch):
    """Time passes when somebody sleeps, and at no other moment."""
    now_s = [1_800_000_000.0]

    def sleep(seconds):
        now_s[0] += seconds

    clock = SimpleNamespace(time=lambda: now_s[0], monotonic=lambda: now_s[0], sleep=sleep)
    for module in (course, toy_system):
        monkeypatch.setattr(module, "time", clock)
