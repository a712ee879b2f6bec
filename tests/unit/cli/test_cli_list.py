"""`snapline list` and the help pages."""

import json
import re
import shlex
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from snapline.chaos.catalogue import GRAMMAR
from snapline.cli.app import app
from snapline.protocols import PROTOCOLS
from snapline.rundir.spec import spec_from
from snapline.runs.patience import timeouts
from snapline.runtime.driver.roster import Timeouts
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


@pytest.mark.parametrize("kind", ["protocols", "workloads", "faults", "systems", "options"])
def test_one_kind_is_listed_alone(kind):
    assert list(json.loads(snapline("list", kind, "--json")[1])) == ["version", kind]


def test_figures_are_listed_with_their_definitions_and_a_schema_if_asked_for():
    listed = json.loads(snapline("list", "figures", "--json")[1])
    assert list(listed) == ["version", "figures", "schema"]
    assert {"name": "lost", "definition": "slots that were given up"} in listed["figures"]
    assert "bytes.markers" in names(listed["figures"])
    assert listed["schema"]["properties"]["lost"]["type"] == "integer"
    assert "figures" not in json.loads(snapline("list", "--json")[1])
    assert "bytes.markers" in snapline("list", "figures")[1]


def test_the_table_shows_every_protocol_with_its_promise():
    _, out = snapline("list", "protocols")
    for name, protocol in PROTOCOLS.items():
        assert name in out
        assert protocol.guarantees[0].value in out


def test_a_kind_that_is_not_there_is_bad_input():
    assert snapline("list", "miracles")[0] == 2


GROUP: Any = typer.main.get_command(app)
PAGES: dict[str, Any] = {"": GROUP, **GROUP.commands}
for _name, _page in GROUP.commands.items():
    PAGES |= {f"{_name} {each}": page for each, page in getattr(_page, "commands", {}).items()}


def examples():
    """Every command that stands in cyan, alone on its lines, at the end of a help page."""
    for page in PAGES.values():
        for found in re.findall(r"^\[cyan\](snapline[^\[]*)\[/", page.epilog, re.MULTILINE):
            yield shlex.split(found)[1:]


def test_every_help_page_says_what_it_does_and_ends_with_examples():
    for name, page in PAGES.items():
        code, out = snapline(*name.split(), "--help")
        told = " ".join(out.split())
        assert code == 0
        assert " Examples " in told
        assert "[[" not in told  # Typer itself sets an argument that may be left out in brackets
        assert told.count("docs/glossary.md") <= 1, name
        assert page.help[0].isupper(), name


@pytest.mark.parametrize("words", list(examples()), ids=" ".join)
def test_every_example_is_a_command_that_is_understood(words):
    """Its options exist, and their values are of the right kind; nothing is run."""
    [name, *rest] = words
    if "--help" not in rest:
        GROUP.commands[name].make_context(name, rest)


@pytest.mark.parametrize("name", PAGES)
def test_the_help_of_every_option_is_whole_sentences(name):
    for param in PAGES[name].params:
        text = re.sub(r" ?\[dim\].*", "", param.help)
        assert text[0].isupper() or text[0] == "[", param.name
        assert text.endswith("."), param.name
        assert len(text.split()) > 4, param.name


def test_the_defaults_that_help_shows_are_those_of_a_run():
    usual = spec_from({"flow": "q12"}, str)
    command = GROUP.commands["run"]
    shown = {p.name: p.default for p in command.params if p.default not in (None, False, "")}
    for name in ("resume", "runs", "heartbeat", "silence", "restart_failures", "restart_window"):
        shown.pop(name, None)
    shown["rate"] = int(shown["rate"])
    assert shown.keys() >= {"rate", "duration", "interval", "protocol", "system", "listen"}
    assert spec_from({"flow": "q12", **shown}, str) == usual
    policy = {p.name: p.default for p in command.params}
    names = ("heartbeat", "silence", "restart_failures", "restart_window")
    assert timeouts(*(policy[name] for name in names)) == Timeouts()
