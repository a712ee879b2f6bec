"""A history that the documentation writes by hand is judged and reported; the page names every field."""

import inspect
import json
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from snapline.cli.app import main
from snapline.journal import codec, entry
from snapline.journal.happenings import Happening
from snapline.metrics.json_form import definitions
from snapline.rundir import directory, results
from snapline.rundir.spec import OWN, Spec

PAGE = (Path(__file__).parents[3] / "docs" / "history.md").read_text()
[BY_HAND] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

READS = "this Snapline reads"


def kinds(union):
    """All classes of a union, and of the unions in it."""
    return [kind for part in get_args(union) for kind in (kinds(part) or [part])]


@pytest.fixture
def history(tmp_path, monkeypatch):
    """The history of the page, written as it says."""
    monkeypatch.chdir(tmp_path)
    exec(BY_HAND, {})
    return tmp_path / "runs" / "mine"


def asked(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, *capsys.readouterr()


def changed(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_history_by_hand_is_judged(history, monkeypatch, capsys):
    code, out, err = asked(monkeypatch, capsys, "validate", "mine", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["kept"], found["inputs"], found["outputs"]) == ("yes", 3, 2)
    assert [each["struck"] for each in found["faults"]] == [True]


def test_an_event_that_is_counted_twice_breaks_it(history, monkeypatch, capsys):
    wrong = BY_HAND.replace("ids=[[1, 2], [3]]", "ids=[[1, 1, 2], [3]]").replace("[2, 1]", "[3, 1]")
    exec(wrong.replace("mkdir(parents=True)", "mkdir(exist_ok=True)"), {})
    code, out, _ = asked(monkeypatch, capsys, "validate", "mine", "--json")
    assert (code, json.loads(out)["guarantees"]["at-most-once"]) == (1, "no")


def test_a_fault_that_no_event_names_proves_nothing(history, monkeypatch, capsys):
    changed(history / "result.json", events=[])
    code, out, _ = asked(monkeypatch, capsys, "validate", "mine", "--json")
    assert (code, json.loads(out)["kept"]) == (3, "unknown")


def test_a_history_by_hand_is_reported(history, monkeypatch, capsys):
    code, _, err = asked(monkeypatch, capsys, "report", "mine", "--to", "page.html")
    assert code == 0, err
    page = Path("page.html").read_text()
    assert "kill driver at=15s" in page
    assert "my-engine" in page


@pytest.mark.parametrize("command", [["validate", "mine"], ["report", "mine", "--to", "p.html"]])
@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        (
            "run.json",
            {"version": 99},
            f"its run.json has version 99, and {READS} {directory.VERSION}",
        ),
        (
            "result.json",
            {"version": 99},
            f"result.json has version 99, and {READS} {results.VERSION}",
        ),
        ("result.json", {"events": [{"type": "Nothing"}]}, "result.json"),
    ],
)
def test_another_version_is_refused_with_both_numbers(
    command, file, change, said, history, monkeypatch, capsys
):
    changed(history / file, **change)
    code, out, err = asked(monkeypatch, capsys, *command)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_the_page_has_the_versions_and_every_field():
    for file, version in (
        ("run.json", directory.VERSION),
        ("result.json", results.VERSION),
        ("journal/driver-*.jsonl`, `journal/slot-*.jsonl", codec.VERSION),
    ):
        assert f"| `{file}` | {version} |" in PAGE, file
    lines = PAGE.splitlines()
    for each in fields(Spec):
        row = f"| `{each.name}` | {definitions(Spec)[each.name]} |"
        assert row in lines, f"docs/history.md needs this row: {row}"
    for kind in (*kinds(entry.Entry), *kinds(Happening)):
        row = _row(kind)
        assert row in lines, f"docs/history.md needs this row: {row}"
    assert results.SNAPLINE == OWN


def _row(kind):
    """A class of entries as a row of the page: what it is, and its fields with their definitions."""
    is_ = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    return f"| `{kind.__name__}` | {is_} | {'; '.join(_fields(kind)) or 'none'} |"


def _fields(kind):
    source = inspect.getsource(kind)
    for each in fields(kind):
        text = definitions(kind)[each.name]
        behind = text in source.split('"""')[-1]  # not a definition that stands for all
        yield f"`{each.name}` ({text})" if behind else f"`{each.name}`"
