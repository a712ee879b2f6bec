"""When the next process is started in place of one that failed, and when a run is given up.

This is a state machine without a clock: whoever uses it says what time it is. It follows what Flink calls
an exponential delay. The first failure is answered at once, each further one after a longer wait. A new
line is progress, and forgets all failures. Too many failures without progress give the run up.

- **Which failures count.** One cause often ends many processes within moments, an executor that dies with
  its slots, say. A process that was already there when the last failure was counted says nothing about
  whether starting again helps, so it does not count. Nor does one to which a fault was done on purpose.
- **How long they count.** Failures leave the account after a while in which all slots ran (`window_s`),
  line or no line: a run that fails now and then goes on for ever. Time in which slots were missing or
  restored their state does not pass here. Otherwise a slot that dies after each long restore would never
  have done so too often.
- **Protocols without lines** make progress when all slots have run for `STEADY_S`.
- **Code of the dataflow** that raises is started again once: the error may be transient. If the same
  operator raises the same kind of exception again, in a process or an epoch that began after the first,
  without progress in between, then it always will. So will one that has not come back from a call.
- **What is stored and damaged, or gone** is treated alike: if a slot ends on the same damage twice, it does
  so every time.
"""

from dataclasses import dataclass
from typing import Final

from snapline.errors import OperatorFailed
from snapline.ids import Epoch
from snapline.wording import plural

DELAY_MIN_S: Final = 0.1
DELAY_MAX_S: Final = 10.0
STEADY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How many failures end a run, if they come within how long."""

    failures: int = 10
    window_s: float = 60.0


@dataclass(slots=True)
class ProcessFailure:
    """A process that is gone, or that never came."""

    tag: str  # of the process
    reason: str  # in one line
    started_s: float  # when it was launched
    planned: bool = False  # a fault was done to it
    epoch: Epoch = 0  # in which its code raised
    raised: OperatorFailed | None = None
    stuck: bool = False  # its code did not come back
    damage: bool = False  # what it had to read is damaged or gone, which no restart mends

    @property
    def lasting(self) -> tuple[str, str] | None:
        """What ends the run if it comes twice: operator and exception, no end, or damage; else None."""
        if self.raised is not None:
            return self.raised.operator, self.raised.kind
        if self.stuck:
            return "stuck", self.reason
        return ("damage", self.reason) if self.damage else None


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The answer that no process is started any more, and why."""

    story: str
    raised: OperatorFailed | None = None  # the dataflow itself fails


@dataclass(slots=True)
class _Counted:
    failure: ProcessFailure
    at_s: float
    ran_s: float  # for how many seconds of the whole run all slots had been running until then


class RestartStrategy:
    """Counts the failures of one run. `lines`: whether its protocol commits lines."""

    def __init__(self, policy: RestartPolicy, *, lines: bool) -> None:
        self.policy = policy
        self.lines = lines
        self._counted: list[_Counted] = []
        self._lasting: dict[tuple[str, str], _Counted] = {}  #: the first of each kind
        self._ran_s = 0.0  #: for how long all slots ran together, until one last failed
        self._since_s: float | None = None  #: since when they run, if they do
        self._next_s = 0.0  #: the time before which no process is started

    def runs(self, now_s: float) -> None:
        """Note that all slots run from now on."""
        if self._since_s is None:
            self._since_s = now_s

    def stands(self, now_s: float) -> None:
        """Note that a slot is missing, or has to restore its state, from now on."""
        if self._since_s is not None:
            ran_s = now_s - self._since_s
            self._ran_s += ran_s
            self._since_s = None
            if not self.lines and ran_s >= STEADY_S:
                self.progress()

    def progress(self) -> None:
        """Forget all failures: a new line was committed, so the job gets on."""
        self._counted.clear()
        self._lasting.clear()
        self._next_s = 0.0

    def failed(self, now_s: float, failure: ProcessFailure) -> float | GivenUp:
        """Take a failure: when the next process may be started, or why none will be."""
        if failure.stuck:
            self._since_s = None  # while one slot does not come back, they do not all run
        self.stands(now_s)
        if failure.lasting is not None and self._came_again(failure.lasting, now_s, failure):
            again = "it did so before, and starting again has not helped"
            return GivenUp(f"{failure.raised or failure.reason}; {again}", failure.raised)
        if not failure.planned and self._is_news(failure):
            self._forget_old()
            self._counted.append(_Counted(failure, now_s, self._ran_s))
            if len(self._counted) >= self.policy.failures:
                return GivenUp(self._too_often(now_s))
            self._next_s = now_s + self._delay_s()
        return max(now_s, self._next_s)

    def explain(self, tag: str, reason: str) -> None:
        """Correct the reason of a failure, because why the process was lost is known now."""
        for counted in self._counted:
            if counted.failure.tag == tag:
                counted.failure.reason = reason

    def _is_news(self, failure: ProcessFailure) -> bool:
        return not self._counted or failure.started_s >= self._counted[-1].at_s

    def _forget_old(self) -> None:
        oldest_s = self._ran_s - self.policy.window_s
        self._counted = [counted for counted in self._counted if counted.ran_s > oldest_s]

    def _delay_s(self) -> float:
        """The wait before the next start: none at first, then 0.1 s, 0.2 s, 0.4 s ..."""
        before = len(self._counted) - 1
        return min(DELAY_MIN_S * 2.0 ** min(before - 1, 30), DELAY_MAX_S) if before else 0.0

    def _came_again(self, key: tuple[str, str], now_s: float, failure: ProcessFailure) -> bool:
        first = self._lasting.get(key)
        if first is None:
            self._lasting[key] = _Counted(failure, now_s, self._ran_s)
            return False
        return failure.epoch > first.failure.epoch or failure.started_s >= first.at_s

    def _too_often(self, now_s: float) -> str:
        first = self._counted[0]
        without = "a new line" if self.lines else f"{STEADY_S:.0f} s in which all slots ran"
        processes = plural(len(self._counted), "process", "processes")
        return (
            f"{first.failure.reason}; in {now_s - first.at_s:.0f} s {processes} failed, "
            f"one after the other, without {without} in between: mend the cause, or allow more with "
            "--restart-failures and --restart-window"
        )
