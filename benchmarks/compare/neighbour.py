"""A busy neighbour: a process that keeps one core busy, pinned to none, while others are measured."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

Neighbour = Literal["quiet", "busy"]
NEIGHBOURS: tuple[Neighbour, ...] = get_args(Neighbour)

#: it looks now and then whether whoever started it is still there
PROGRAM = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def beside(neighbour: Neighbour) -> Iterator[None]:
    """Have such a neighbour, if it is a busy one, for as long as the `with` block lasts."""
    if neighbour == "quiet":
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", PROGRAM])
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError("the busy neighbour was gone before the run was over")
    finally:
        process.kill()
        process.wait()
