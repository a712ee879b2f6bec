"""Every session tries a seed of its own; all processes of a session try the same one."""

import os
import subprocess
import sys
from pathlib import Path


def fresh_seed(**environment: str) -> int:
    """The seed that a process with this environment draws, as one that runs tests does."""
    told = {k: v for k, v in os.environ.items() if k not in ("CI", "PYTEST_XDIST_TESTRUNUID")}
    command = [sys.executable, "-c", "from sim_runs import FRESH; print(FRESH)"]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parent,
        env={**told, **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(done.stdout)


def test_processes_of_one_session_find_the_same_tests():
    session = "5f0c1e" + 26 * "0"
    seeds = [fresh_seed(PYTEST_XDIST_TESTRUNUID=session) for _ in range(2)]
    assert seeds == [0x5F0C1E, 0x5F0C1E]
    assert fresh_seed(PYTEST_XDIST_TESTRUNUID="6" + session[1:]) == 0x6F0C1E


def test_every_session_tries_another_seed_but_those_of_ci():
    assert len({fresh_seed() for _ in range(3)}) > 1
    assert fresh_seed(CI="1") == 1
