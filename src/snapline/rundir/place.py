"""Checks that runs can be written to a place, without leaving anything there."""

import tempfile
from pathlib import Path

from snapline.errors import UsageError


def check_place(place: Path) -> Path:
    """The nearest existing directory on the way to `place`; UsageError if it cannot be written to."""
    way = (place.absolute(), *place.absolute().parents)
    existing = next(path for path in way if path.is_symlink() or path.exists())
    if not existing.exists():
        raise UsageError(
            f"runs cannot be kept in {place}: {existing} is a link that leads nowhere; name a directory "
            "(--runs)"
        )
    if not existing.is_dir():
        raise UsageError(
            f"runs cannot be kept in {place}: {existing} is a file; name a directory (--runs)"
        )
    try:
        with tempfile.TemporaryFile(dir=existing):  # it has no name, so that nothing is left behind
            pass
    except OSError as error:
        raise UsageError(
            f"runs cannot be kept in {place}: {existing} cannot be written ({error.strerror}); "
            "name another directory (--runs)"
        ) from error
    return existing
