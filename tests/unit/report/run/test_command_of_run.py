"""The command that a page shows makes the same run again."""

import shlex
from dataclasses import asdict, fields
from typing import Any

import pytest
import typer.main

from snapline.arguments import option
from snapline.cli.app import app
from snapline.cli.run import described
from snapline.report.run.command import OPTIONS, WITHOUT_OPTION, command_of
from snapline.rundir.spec import Spec, spec_from

GIVEN = [
    {"flow": "q12"},
    {"flow": "q12", "protocol": "uncoordinated", "interval": "2s", "faults": "kill slot=1 at=8s"},
    {"flow": "q3", "rate": 500, "duration": "1500ms", "hot": 20, "hot_moves": "5s", "seed": 7},
    {"flow": "q12", "rate": "max", "records": 5_000, "slots": 3, "spares": 1, "size": "small"},
    {"flow": "q12", "options": {"batch": 500}, "journal": "full", "reference": True},
    {"flow": "q12", "warm_up": "3s", "publish_lag": 1, "guarantee": "at-least-once"},
    {"flow": "q12", "protocol": "partial", "save": {"counts": "1s", "bids": "no"}},
    {"flow": "q12", "inputs": {"counts": "wait:100"}, "allow_vacuous": True},
    {"flow": "my_flow.py:flow", "duration": "20s", "pools": {"model": 2}, "shared": True},
    {"flow": "q12", "duration": "forever", "retain": "1m", "oversubscribe": True},
    {"flow": "sst", "settings": {"resources": 100}, "input": "/tmp", "listen": "10.0.0.1"},
    {"flow": "sst", "system": "structured-streaming"},
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


def test_no_field_of_a_description_is_forgotten_in_the_command():
    names = {field.name for field in fields(Spec)} - {"_"}
    assert set(OPTIONS) | set(WITHOUT_OPTION) == names
    assert not set(OPTIONS) & set(WITHOUT_OPTION)


def test_every_option_of_the_command_is_tried_above():
    usual, specs = asdict(Spec("")), [asdict(spec_from(given, option)) for given in GIVEN]
    tried = {name for name in usual if any(spec[name] != usual[name] for spec in specs)}
    assert set(OPTIONS) <= tried
