"""What a slot says before an exception ends it, and what the driver makes of that."""

from typing import Final

from snapline.errors import ObjectDamaged, ObjectMissing, OperatorFailed
from snapline.ids import Epoch
from snapline.runtime.restart import Failure
from snapline.runtime.words import Failed

DEFINITE: Final = {ObjectDamaged.__name__, ObjectMissing.__name__}
"""The errors after which reading the same again gives the same."""

TEXT_MAX = 2_000
"""An exception may hold a whole batch in words; its traceback is written down elsewhere."""


def last_word(error: Exception, epoch: Epoch) -> Failed:
    """How a slot tells the driver what ends it."""
    if isinstance(error, OperatorFailed):
        text = error.text[:TEXT_MAX]
        return Failed(epoch, error.kind, text, error.operator, error.code, error.where)
    return Failed(epoch, type(error).__name__, str(error)[:TEXT_MAX], "", "", "")


def failure_of(word: Failed, tag: str, started_s: float, *, planned: bool) -> Failure:
    """What the end of this slot means to the restart strategy."""
    told = OperatorFailed(word.operator, word.kind, word.text, word.code, word.where)
    raised = told if word.operator else None
    reason = str(told) if word.operator else f"a slot ended with {told.cause}"
    damage = not word.operator and word.kind in DEFINITE
    return Failure(tag, reason, started_s, planned, word.epoch, raised, damage)
