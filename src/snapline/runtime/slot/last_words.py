"""What a slot says before an exception ends it."""

from snapline.errors import OperatorFailed
from snapline.ids import Epoch
from snapline.runtime.wire.control_messages import Failed

TEXT_MAX = 2_000
"""The longest text that is sent: an exception may hold a batch. Its traceback is in a file."""


def last_word(error: Exception, epoch: Epoch) -> Failed:
    """The message in which a slot tells the driver what ends it."""
    if isinstance(error, OperatorFailed):
        text = error.text[:TEXT_MAX]
        return Failed(epoch, error.kind, text, error.operator, error.code, error.where)
    return Failed(epoch, type(error).__name__, str(error)[:TEXT_MAX], "", "", "")
