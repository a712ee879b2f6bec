"""`snapline list` and the help pages."""

import json

import pytest
from typer.testing import CliRunner

from snapline.chaos.catalogue import GRAMMAR
from snapline.cli.app import app
from snapline.protocols import PROTOCOLS
from snapline.systems.registry import SYSTEMS
from snapline.workload import WORKLOADS


def snapline(*arguments):
    result = CliRunner().invoke(app, arguments, terminal_width=200)
    return result.exit_code, result.stdout


def names(listed):
    return [row["name"] for row in listed]


def test_without_a_kind_everything_is_listed():
    code, out = snapline("list", "--json")
    listed = json.loads(out)
    assert code == 0
    assert names(listed["protocols"]) == list(PROTOCOLS)
    assert names(listed["workloads"]) == list(WORKLOADS)
    assert names(listed["faults"]) == [example for example, _ in GRAMMAR]
    assert {row["where"] for row in listed["faults"]} == {
        "everywhere",
        "simulator",
        "simulator, clusters",
        "simulator, real runs",
    }
    assert names(listed["systems"]) == ["snapline", *SYSTEMS]


@pytest.mark.parametrize("kind", ["protocols", "workloads", "faults", "systems"])
def test_one_kind_is_listed_alone(kind):
    assert list(json.loads(snapline("list", kind, "--json")[1])) == [kind]


def test_the_table_shows_every_protocol_with_its_promise():
    _, out = snapline("list", "protocols")
    for name, protocol in PROTOCOLS.items():
        assert name in out
        assert protocol.guarantees[0].value in out


def test_a_kind_that_is_not_there_is_bad_input():
    assert snapline("list", "miracles")[0] == 2


def test_help_shows_the_commands_and_examples():
    assert "simulate" in snapline("--help")[1]
    out = snapline("simulate", "--help")[1]
    for option in ("--protocol", "--workload", "--seeds", "--faults", "--diagram", "--repeat"):
        assert option in out
    assert "snapline simulate --protocol hmnr --workload q8 --seeds 200" in out
