"""Where runs are kept: whether anything can be written there, found out without leaving a trace."""

import tempfile
from pathlib import Path

from snapline.errors import UsageError


def check_place(place: Path) -> Path:
    """What exists already of a directory that can be written, or made; UsageError if it cannot be."""
    existing = next(path for path in (place.absolute(), *place.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise UsageError(
            f"runs cannot be kept in {place}: {existing} is a file; name a directory (--runs)"
        )
    try:
        with tempfile.TemporaryFile(dir=existing):  # a file without a name: nothing is left
            pass
    except OSError as error:
        raise UsageError(
            f"runs cannot be kept in {place}: {existing} cannot be written ({error.strerror}); "
            "name another directory (--runs)"
        ) from error
    return existing
