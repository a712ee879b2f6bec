"""What a slot says before an exception ends it."""

from snapline.errors import OperatorFailed
from snapline.ids import Epoch
from snapline.runtime.wire.control_messages import Failed

TEXT_MAX = 2_000
"""An exception may hold a whole batch in words; its traceback is written down elsewhere."""


def last_word(error: Exception, epoch: Epoch) -> Failed:
    """How a slot tells the driver what ends it."""
    if isinstance(error, OperatorFailed):
        text = error.text[:TEXT_MAX]
        return Failed(epoch, error.kind, text, error.operator, error.code, error.where)
    return Failed(epoch, type(error).__name__, str(error)[:TEXT_MAX], "", "", "")
