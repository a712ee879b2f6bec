"""Checks that something can be written to a place, without leaving anything there."""

import tempfile
from pathlib import Path

from snapline.errors import UsageError


def check_place(place: Path) -> Path:
    """The nearest existing directory on the way to `place`; UsageError if runs cannot be kept there."""
    return check_writable(place, f"runs cannot be kept in {place}", "--runs")


def check_writable(place: Path, problem: str, said: str) -> Path:
    """The nearest existing directory on the way to `place`; UsageError if it cannot be written to.

    `problem` begins the message, and `said` is where the user says another place.
    """
    way = (place.absolute(), *place.absolute().parents)
    existing = next(path for path in way if path.is_symlink() or path.exists())
    if not existing.exists():
        raise UsageError(
            f"{problem}: {existing} is a link that leads nowhere; name a directory ({said})"
        )
    if not existing.is_dir():
        raise UsageError(f"{problem}: {existing} is a file; name a directory ({said})")
    try:
        with tempfile.TemporaryFile(dir=existing):  # it has no name, so that nothing is left behind
            pass
    except OSError as error:
        raise UsageError(
            f"{problem}: {existing} cannot be written ({error.strerror}); name another directory ({said})"
        ) from error
    return existing
