"""Where files of ours lie that can always be made again."""

import os
from collections.abc import Mapping
from pathlib import Path


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory for Snapline in the user's cache."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "snapline"
