"""The page about own queries: its test runs, its functions and arguments are there."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import snapline as sl
from snapline.chaos.faults import parse
from snapline.spark.java import find_java, java_home
from snapline.systems.own_query.adapter import refusal
from snapline.systems.own_query.check import StreamCheck

PAGE = (Path(__file__).parent.parent.parent / "docs" / "own_queries.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_faults_of_the_page_can_be_done_to_a_query():
    faults = re.findall(r"`((?:kill|pause) driver [^`]+)`", PAGE)
    assert len(faults) >= 3
    assert not [fault for fault in faults if any(map(refusal, parse(fault)))]


def test_the_page_calls_the_function_as_it_wants_to_be_called():
    calls = [
        node
        for block in BLOCKS
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check_stream"
    ]
    assert len(calls) == 2
    for call in calls:
        given = {word.arg: word.value for word in call.keywords}
        inspect.signature(sl.check_stream).bind(*call.args, **given)


def test_the_page_names_what_a_result_has():
    named = re.findall(r"`result\.(\w+)`", PAGE)
    assert len(named) == 6
    assert not [name for name in named if name not in dir(StreamCheck)]


@pytest.mark.slow
@pytest.mark.spark
def test_the_test_of_the_page_passes_and_its_wrong_sink_is_caught(tmp_path):
    (tmp_path / "test_page.py").write_text("\n\n".join(BLOCKS))
    environment = {**os.environ, "JAVA_HOME": str(java_home(find_java()))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert re.search(
        r"^FAILED test_page.py::test_my_sink - Failed: exactly once: no", ran.stdout, re.M
    )
    assert re.search(r"duplicate window=.*it came out 2 times", ran.stdout)
