"""Checks the commands and timers that a protocol defines itself.

Commands go over connections, and both stand in journals. Nobody but the protocol's own file describes
them, so their forms are derived from their fields (`core.forms`). Whatever cannot be derived, or could not
be read back, is refused as soon as the protocol is defined, and not in the middle of a run.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import get_args, get_origin, get_type_hints

from snapline.core.events import SHARED_COMMANDS, SHARED_TIMERS, Command, Timer
from snapline.core.forms import Forms, Hint
from snapline.errors import ProtocolError

_ALLOWED = (
    "whole numbers, texts, flags, ids, tuples of these, and mappings with texts or numbers as keys"
)


def check_vocabulary(
    protocol: str, commands: tuple[type[Command], ...], timers: tuple[type[Timer], ...]
) -> None:
    """Refuse commands and timers that could not be written and read back. Raises ProtocolError."""
    for kinds, base, shared in (
        (commands, Command, SHARED_COMMANDS),
        (timers, Timer, SHARED_TIMERS),
    ):
        taken = {kind.__name__ for kind in shared}
        for kind in kinds:
            noun = base.__name__.lower()
            if problem := _problem(kind, base, taken):
                name = getattr(kind, "__name__", repr(kind))
                raise ProtocolError(f"the protocol {protocol} brings the {noun} {name}: {problem}")
            taken.add(kind.__name__)


def _problem(kind: type, base: type, taken: set[str]) -> str | None:
    """Why a class cannot be a command or a timer; None if it can."""
    if not isinstance(kind, type) or not issubclass(kind, base):
        return f"derive it from snapline.core.events.{base.__name__}"
    # An undecorated class would inherit the fields of its base, and its own would never be written.
    if not is_dataclass(kind) or "__dataclass_params__" not in vars(kind):
        return "make it a dataclass: @dataclass(frozen=True, slots=True)"
    if not vars(kind)["__dataclass_params__"].frozen:
        return "make it frozen: @dataclass(frozen=True, slots=True)"
    if kind.__name__ in taken:
        return "another one has this name already, so choose another name"
    try:
        Forms().record(kind)
        hints = get_type_hints(kind)
    except (TypeError, NameError) as error:
        return f"{error}; its fields may be {_ALLOWED}"
    if base is Timer and any(map(_maps, hints.values())):
        return "the fields of a timer must be hashable, so it can have no mapping"
    return None


def _maps(hint: Hint) -> bool:
    origin: Hint = get_origin(hint)
    return origin is Mapping or any(map(_maps, get_args(hint)))
