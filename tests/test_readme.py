"""What README and the page of the simulator show is what a newcomer sees when the command is run.

A simulated run is deterministic, so every line of its story and its picture are compared.
"""

import re
from pathlib import Path

from typer.testing import CliRunner

from snapline.cli.app import app

ROOT = Path(__file__).parent.parent


def _story_arguments() -> list[str]:
    command = re.search(r"story\(\) \{\n(.*?)\n\}", (ROOT / "dev").read_text(), re.DOTALL)
    assert command is not None
    words = re.findall(r'"[^"]*"|\S+', command[1].replace("\\\n", " "))
    return [word.strip('"') for word in words if word not in ("snapline", '"$@"')]


def test_the_story_is_what_the_page_of_the_simulator_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, _story_arguments(), catch_exceptions=False)
    assert result.exit_code == 0
    page = (ROOT / "docs" / "simulator.md").read_text()
    shown = re.search(r"`\./dev story` .*?\n\n```\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    printed = [line.rstrip() for line in result.output.splitlines()]
    for line in shown[1].splitlines():
        assert line in printed, line
    assert (tmp_path / "run.svg").read_text().startswith("<svg")


def test_the_picture_in_readme_is_the_one_that_is_drawn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, _story_arguments(), catch_exceptions=False)
    drawn = (tmp_path / "run.svg").read_text()
    assert "](docs/uncoordinated.svg)" in (ROOT / "README.md").read_text()
    assert drawn == (ROOT / "docs" / "uncoordinated.svg").read_text()


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 150
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) < 300
