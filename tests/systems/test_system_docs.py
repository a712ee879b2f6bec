"""The page about systems: its skeleton is a system, its commands and columns are right."""

import inspect
import re
from pathlib import Path

import pytest

from snapline.chaos.faults import parse
from snapline.errors import UsageError
from snapline.systems.harness.base import System
from snapline.systems.registry import SYSTEMS, system_of
from snapline.workload import WORKLOADS

PAGE = (Path(__file__).parent.parent.parent / "docs" / "systems.md").read_text()


def members(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def skeleton():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    return names["MySystem"]


def test_the_skeleton_has_all_that_a_system_has():
    assert members(System) <= members(skeleton())
    for name, method in inspect.getmembers(System, inspect.isfunction):
        if not name.startswith("_"):
            own = inspect.signature(getattr(skeleton(), name))
            assert list(own.parameters) == list(inspect.signature(method).parameters), name


def test_the_skeleton_takes_and_refuses_faults():
    system = skeleton()()
    (kill,), (cut,) = parse("kill driver at=1s"), parse("cut slot=1 from=0 at=1s")
    assert system.refusal(kill) is None
    assert system.refusal(cut)


def test_the_commands_of_the_page_name_systems_and_faults_that_exist():
    commands = [line for line in PAGE.splitlines() if line.startswith("snapline run")]
    assert len(commands) >= 3
    for command in commands:
        (system,) = re.findall(r'--system (?:"([^"]+)"|(\S+))', command)
        chosen = system_of(system[0] or system[1])
        for fault in parse(re.findall(r'--faults "([^"]+)"', command)[0]):
            assert chosen.refusal(fault) is None
        assert command.split()[2] in chosen.workloads


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_runs_workloads_that_exist_and_is_called_as_it_is_listed(name):
    system = system_of(name)
    assert system.name == name
    assert set(system.workloads) <= set(WORKLOADS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("STRUCTURED-STREAMING", "did you mean structured-streaming"),
        ("structured", "did you mean structured-streaming"),
        ("structured-streaming sunk=x", "'sunk=x' is none of them"),
        ("structured-streaming sink=x", "exactly-once and at-least-once"),
        ("structured-streaming executors=some", "a number from 0"),
        ("structured-streaming executors=99", "a number from 0"),
        ("structured-streaming sink=exactly-once sink=exactly-once", "twice"),
    ],
)
def test_a_system_that_is_not_there_is_bad_input(text, said):
    with pytest.raises(UsageError, match=said):
        system_of(text)


REFUSED = [
    ("kill executor=0 at=1s", "unless it has executors"),
    ("delay slot=0 1s at=1s for=1s", "unless it has executors"),
    ("cut slot=0 from=1 at=1s", "unless it has executors"),
    ("cut slot=0 from=1,2 at=1s for=2s", "unless it has executors"),
    ("kill driver on=recovery", "on=round"),
    ("kill slot=0 at=1s", "no slots"),
    ("store outage at=1s for=1s", "no slots and no store"),
]


def test_an_executor_can_be_killed_where_there_is_one():
    system = system_of("structured-streaming executors=2")
    there, beyond = parse("kill executor=1 at=1s; kill executor=2 at=1s")
    assert system.refusal(there) is None
    assert "0 to 1" in (system.refusal(beyond) or "")


@pytest.mark.parametrize(("fault", "because"), REFUSED)
def test_what_structured_streaming_cannot_take_is_refused_with_a_reason(fault, because):
    (parsed,) = parse(fault)
    assert because in (system_of("structured-streaming").refusal(parsed) or "")
