"""What is freed in large pieces goes back to the machine at once."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from snapline.runtime.slot.allocator import give_memory_back

def rss_mb():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

{first}
for size in (5, 9, 14, 20, 26):  # the C library learns from every piece that is freed
    np.ones(size << 17)
before = rss_mb()
grown = [np.ones(6 << 17) for _ in range(20)]  # 6 MB each
kept = [np.ones(1 << 14) for _ in range(20)]  # 128 KB each, behind them
del grown
print(rss_mb() - before)
"""


def left_over(first):
    """Megabytes beyond before, after 120 MB were allocated and freed in the midst of other things."""
    program = PROGRAM.format(first=first)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about the allocator of glibc")
def test_large_arrays_leave_nothing_behind():
    assert left_over("give_memory_back()") < 20 < 80 < left_over("")
