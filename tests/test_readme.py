"""What README shows is what a newcomer sees: a simulated run is deterministic, so it can be held to it."""

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


def test_the_story_is_what_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, _story_arguments(), catch_exceptions=False)
    assert result.exit_code == 0
    readme = (ROOT / "README.md").read_text()
    shown = re.search(r"`\./dev story` .*?\n\n```\n(.*?)```", readme, re.DOTALL)
    assert shown is not None
    printed = [line.rstrip() for line in result.output.splitlines()]
    for line in shown[1].splitlines():
        assert line in printed, line
    assert (tmp_path / "run.svg").read_text().startswith("<svg")


def test_the_picture_in_readme_is_the_one_that_is_drawn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, _story_arguments(), catch_exceptions=False)
    drawn = (tmp_path / "run.svg").read_text()
    assert drawn == (ROOT / "docs" / "uncoordinated.svg").read_text()
