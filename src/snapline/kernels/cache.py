"""Compiled kernels on disk, in the user's cache: one process makes them for all later ones of this machine.

To compile takes some ten seconds, to load what was compiled about one. So nobody waits for a compiler:
where nothing is there yet, a process of its own makes it, with the lowest priority, and whoever needs
kernels meanwhile uses numpy.
"""

import fcntl
import os
import platform
import subprocess
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from snapline.kernels import forms
from snapline.user_cache import cache_directory

_NUMBA_CACHE = "NUMBA_CACHE_DIR"


def compiled_before() -> bool:
    """Whether kernels may be loaded here, and would be loaded without compiling."""
    return _wanted() and _mark().exists()


def load() -> bool:
    """Load the kernels, which are compiled if need be. Returns whether they are loaded."""
    os.environ.setdefault(_NUMBA_CACHE, str(cache_directory() / "kernels"))
    loaded = forms.load()
    if loaded:
        with suppress(OSError):  # a cache that cannot be written to is no cache, and nothing worse
            _mark().touch()
    return loaded


def load_if_asked() -> bool:
    """Load the kernels where the environment asks every process for that."""
    return forms.loaded() or (forms.mode() == "compiled" and load())


def compile_beside() -> None:
    """Have another process compile the kernels, unless they are there, or another one is at it."""
    if _wanted() and not _mark().exists():
        command = [sys.executable, "-m", __name__]
        # The shell does not wait: the compiler is nobody's child. Ctrl-C is not meant for it: it ends soon.
        quietly = 'exec "$@" </dev/null >/dev/null 2>&1 &'
        subprocess.run(["/bin/sh", "-c", quietly, "sh", *command], start_new_session=True)


def compile_here() -> None:
    """Compile the kernels, unless another process is at it."""
    os.nice(19)
    mark = _mark()
    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with mark.with_suffix(".lock").open("w") as lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        load()


def _wanted() -> bool:
    return forms.mode() != "numpy" and find_spec("numba") is not None


@cache
def _mark() -> Path:
    """The file that says that these kernels were compiled by this numba for this processor."""
    what = sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        what.update(path.read_bytes() + str(path).encode())
    what.update(f"{sys.version} {metadata.version('numba')} {_processor()}".encode())
    return cache_directory() / "kernels" / f"{what.hexdigest()[:24]}.compiled"


def _processor() -> str:
    """What the machine code depends on: the name of the processor, and what it can do."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        told = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
        return "\n".join(told)
    return platform.processor()


if __name__ == "__main__":
    compile_here()
