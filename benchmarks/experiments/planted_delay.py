"""Slots that are slower by a known amount: each batch that a source reads costs so much more CPU time."""

from benchmarks.common.real_run import PROGRAM

_SLOWER = """
import time
from snapline.engine.slot.task import Task

read = Task.read_source

def slower(task, *what):
    records = read(task, *what)
    end_s = time.perf_counter() + {per_record_s!r} * records
    while time.perf_counter() < end_s:
        pass
    return records

Task.read_source = slower
"""


def slower_program(per_record_s: float) -> str:
    """The program of a slot whose sources take so much longer for each record."""
    return _SLOWER.format(per_record_s=per_record_s) + PROGRAM
