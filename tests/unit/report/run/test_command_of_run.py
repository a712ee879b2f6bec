"""The command that a page shows makes the same run again."""

import shlex
from dataclasses import asdict
from typing import Any

import pytest
import typer.main

from snapline.arguments import option
from snapline.cli.app import app
from snapline.cli.run import described
from snapline.report.run.command import command_of
from snapline.rundir.spec import spec_from

GIVEN = [
    {"flow": "q12"},
    {"flow": "q12", "protocol": "uncoordinated", "interval": "2s", "faults": "kill slot=1 at=8s"},
    {"flow": "q3", "rate": 500, "duration": "1500ms", "hot": 20, "hot_moves": "5s", "seed": 7},
    {"flow": "q12", "rate": "max", "records": 5_000, "slots": 3, "spares": 1, "size": "small"},
    {"flow": "q12", "options": {"batch": 500}, "journal": "full", "reference": True},
    {"flow": "q12", "warm_up": "3s", "publish_lag": 1, "guarantee": "at-least-once"},
]


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_the_command_describes_the_same_run(given):
    spec = spec_from(given, option)
    words = shlex.split(command_of(asdict(spec)))
    assert words[:2] == ["snapline", "run"]
    group: Any = typer.main.get_command(app)
    command = group.commands["run"]
    context = command.make_context("run", words[2:], resilient_parsing=False)
    stated = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name).name == "COMMANDLINE"
    }
    assert spec_from(described(stated), option) == spec
