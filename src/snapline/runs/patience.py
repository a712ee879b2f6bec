"""How patient a driver is with its processes, from what the user gave."""

from collections.abc import Callable

from snapline.arguments import whole
from snapline.durations import millis
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.runtime.driver.restart import RestartPolicy
from snapline.runtime.driver.roster import Timeouts

FAILURES_MAX = 1_000_000


def timeouts(
    heartbeat: str | Millis,
    silence: str | Millis,
    restart_failures: int = RestartPolicy().failures,
    restart_window: str | Millis = "60s",
    written: Callable[[str], str] = str,
) -> Timeouts:
    """The time-outs of a run, from what the user gave; UsageError if they make no sense together."""
    beat_s = millis(heartbeat, written("heartbeat"), least_ms=1) / 1000
    silence_s = millis(silence, written("silence"), least_ms=1) / 1000
    if not 0 < 2 * beat_s <= silence_s:
        raise UsageError(
            f"{written('silence')} ({silence_s} s) must be at least two heartbeats "
            f"({written('heartbeat')}, {beat_s} s): a slot that misses one would be given up"
        )
    window_s = millis(restart_window, written("restart_window"), least_ms=1) / 1000
    failures = whole(1, FAILURES_MAX)(restart_failures, written("restart_failures"))
    # The lease exceeds the silence: a slot outlives a driver that only pauses for that long.
    lease_s = max(Timeouts().lease_s, 2.5 * silence_s)
    restarts = RestartPolicy(failures, window_s)
    return Timeouts(beat_s, silence_s, lease_s, restarts=restarts)
