"""What a user says about the protection of an operator, read and put together.

Each saying gives some of the parts of a policy (`core/policy.py`), by name. Said in a dataflow, they add
up, and two that contradict each other are refused in the line that says the second. What is said where the
dataflow is run replaces what the dataflow says.
"""

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any, Final, TypeAlias

from snapline.arguments import refused, shown, whole
from snapline.core.policy import DEFAULT_POLICY, Intake, Policy, Stale
from snapline.durations import millis, write_duration
from snapline.errors import GraphError, UsageError

Saying: TypeAlias = Mapping[str, Any]
"""Parts of a policy, by the names that they have there."""

Sayings: TypeAlias = tuple[tuple[str, str], ...]
"""What is said about operators where a dataflow is run, as texts: the operator, and what is said of it."""

VERSIONS_MAX: Final = 100
BUFFER_MAX: Final = 1_000_000

_INTAKES: Final = tuple(intake.value for intake in Intake)
_FORMS: Final = ", ".join(_INTAKES)


def to_checkpoint(every: Any, versions: Any, stale: Any) -> Saying:
    """What `.checkpoint(...)` says; what is None is not said. Raises UsageError."""
    said: dict[str, Any] = {"saved": True}
    if every is not None:
        said["every_ms"] = millis(every, "checkpoint(every=...)", least_ms=1)
    if versions is not None:
        said["versions"] = whole(1, VERSIONS_MAX)(versions, "checkpoint(versions=...)")
    if stale is not None:
        said["stale"] = _one_of(Stale, "checkpoint(stale=...)", stale)
    return said


def to_take(how: Any, buffer: Any) -> Saying:
    """What `.inputs(...)` says. Raises UsageError."""
    intake = _one_of(Intake, "inputs(...)", how)
    if buffer is None:
        return {"intake": intake}
    if intake is not Intake.WAIT:
        raise GraphError(
            f'inputs({intake.value!r}) holds nothing back: buffer= is for inputs("wait"), where it is how '
            "many messages of a channel are held back before their sender waits"
        )
    return {"intake": intake, "buffer": whole(1, BUFFER_MAX)(buffer, "inputs(buffer=...)")}


BEST_EFFORT: Final[Saying] = {"saved": False}
"""What `.best_effort()` says."""


def _one_of(kind: type[Intake] | type[Stale], what: str, value: Any) -> Any:
    names = [each.value for each in kind]
    if not isinstance(value, str) or value not in names:
        raise GraphError(f"{what} takes one of {', '.join(names)}, not {shown(value)}")
    return kind(value)


def added(name: str, policy: Policy | None, before: Set[str], said: Saying) -> Policy:
    """The policy of an operator with another saying, where the parts `before` were said already.

    Raises GraphError if the two contradict each other.
    """
    policy = policy or DEFAULT_POLICY
    for part, value in said.items():
        there = getattr(policy, part)
        if part in before and there != value:
            raise GraphError(
                f"'{name}' is {_words(part, there)}, and {_words(part, value)}: say one of them"
            )
    return settled(name, replace(policy, **said))


def settled(name: str, policy: Policy) -> Policy:
    """The policy, if its parts go together. Raises GraphError."""
    if policy.intake is Intake.KEEP and policy.saved is False:
        raise GraphError(
            f"'{name}' keeps its inputs, and is never saved: what is kept is sent again from its last "
            "checkpoint on, so have it saved, or let its inputs drop or wait"
        )
    return policy


def _words(part: str, value: Any) -> str:
    match part:
        case "saved":
            return "saved by checkpoint()" if value else "never saved by best_effort()"
        case "every_ms":
            return f"saved every {write_duration(value)}"
        case "versions":
            return f"to keep {value} checkpoints"
        case "intake":
            return f"to have inputs({value.value!r})"
        case "stale":
            return f"to {value.value} stale windows"
    return f"to hold back {value} messages of a channel"


# The same as texts: from the shell, from sweep files, and in run.json.


def save_rule(value: Any, name: str) -> Sayings:
    """A rule for which operators are saved: `{"model": "1s", "clicks": "no"}`, or a list of such pairs."""
    pairs = _pairs(value, name)
    return tuple((operator, _save_text(said, f"{name}: {operator}")) for operator, said in pairs)


def inputs_rule(value: Any, name: str) -> Sayings:
    """A rule for the inputs of operators: `{"model": "keep", "clicks": "wait:1000"}`, or such pairs."""
    pairs = _pairs(value, name)
    return tuple((operator, _inputs_text(said, f"{name}: {operator}")) for operator, said in pairs)


def _pairs(value: Any, name: str) -> list[tuple[str, Any]]:
    try:
        pairs = [(operator, said) for operator, said in dict(value).items()]
    except (TypeError, ValueError):
        pairs = [(None, None)]
    if isinstance(value, str) or not all(isinstance(operator, str) for operator, _ in pairs):
        raise refused(name, "a dict of operators and what is said of each", value)
    return pairs


def _save_text(said: Any, name: str) -> str:
    if isinstance(said, bool):
        return "yes" if said else "no"
    if isinstance(said, str) and said in ("yes", "no"):
        return said
    try:
        return write_duration(millis(said, name, least_ms=1))
    except UsageError as error:
        raise UsageError(f"{error}; or yes, or no") from None


def _inputs_text(said: Any, name: str) -> str:
    text = said if isinstance(said, str) else ""
    how, colon, size = text.partition(":")
    sized = size.isascii() and size.isdecimal() and 0 < int(size[:9]) <= BUFFER_MAX
    if how not in _INTAKES or (colon and (how != Intake.WAIT.value or not sized)):
        allowed = f"one of {_FORMS}, or wait:N with N messages per channel, up to {BUFFER_MAX:,}"
        raise refused(name, allowed, said)
    return text


def saying_of(save: str | None, inputs: str | None) -> Saying:
    """What texts that have passed the two rules say about one operator; None: nothing."""
    said: dict[str, Any] = {}
    if save is not None:
        said["saved"] = save != "no"
        said["every_ms"] = None if save in ("yes", "no") else millis(save)
    if inputs is not None:
        how, _, size = inputs.partition(":")
        said["intake"], said["buffer"] = Intake(how), int(size or 0)
    return said
