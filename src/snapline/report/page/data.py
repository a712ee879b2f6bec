"""The end of a page: settings, environment, every figure with its definition, and all tables as files."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any

from snapline.durations import LONGEST_MS, write_duration
from snapline.metrics.figures import Figures
from snapline.metrics.json_form import listed
from snapline.report.page.html import DataTable, download, download_json, grid, pairs
from snapline.report.run.reported import ReportedRun

LISTED_MAX = 200
"""So much of each list is in the JSON file."""

_NO_SETTINGS = ("version", "id", "digest", "meanings", "sinks")


def data(run: ReportedRun) -> list[str]:
    """Settings, environment, figures and files."""
    figures = DataTable(f"{run.name}-figures", ("figure", "value", "definition"), _figures(run))
    seconds = DataTable(
        f"{run.name}-seconds",
        run.seconds[0]._fields if run.seconds else (),
        [tuple(row) for row in run.seconds],
    )
    document = _document(run)
    cut = escape(
        ", ".join(f"{each} has {size:,}" for each, size in dict(_too_long(document)).items())
    )
    files = [download_json(run.name, _shortened(document)), download(figures)]
    files += [download(seconds)] if run.seconds else []
    parts = [f"<h3>Settings</h3>{pairs(settings_told(run.settings))}"]
    if run.environment:
        parts.append(f"<h3>Environment</h3>{pairs(settings_told(run.environment))}")
    if figures.rows:
        table = grid(figures.columns, figures.rows, "figures")
        parts.append(
            f"<details><summary>Every figure, with its definition</summary>{table}</details>"
        )
    parts.append(f"<p>Everything as files: {', '.join(files)}.</p>")
    if cut:
        parts.append(
            f"<p>Lists end after {LISTED_MAX} values in {escape(run.name)}.json: {cut}.</p>"
        )
    return parts


def _document(run: ReportedRun) -> dict[str, Any]:
    return {
        "run": run.name,
        "simulated": run.simulated,
        "command": run.command,
        "settings": dict(run.settings),
        "kept": run.kept,
        "because": run.because,
        "guarantees": dict(run.guarantees),
        "problems": list(run.problems),
        "faults": list(run.strikes),
        "metrics": dict(run.metrics),
        "rows": dict(run.rows),
        "environment": dict(run.environment),
    }


def _too_long(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """The lists that are shortened, by their names, and how long they are."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _too_long(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for each in value[:LISTED_MAX]:
            yield from _too_long(each, name)
        if len(value) > LISTED_MAX:
            yield name, len(value)


def _shortened(value: Any) -> Any:
    """The same value with as much of each list as the file has."""
    if isinstance(value, Mapping):
        return {key: _shortened(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(each) for each in value[:LISTED_MAX]]
    return value


def settings_told(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Settings that say something, each with its name in words and its value as people read it."""
    for name, value in settings.items():
        if name not in _NO_SETTINGS and value not in (None, "", False, [], {}, ()):
            yield _named(name, value)


def _named(name: str, value: Any) -> tuple[str, str]:
    """A setting as people read it: durations with their units, and a moment as a date."""
    words = name.removesuffix("_ms").removesuffix("_s").replace("_", " ")
    if name == "origin_s" and isinstance(value, int | float) and 1e9 < value < 2.5e11:
        return "input began", f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if name.endswith("_ms") and type(value) is int and 0 < value <= LONGEST_MS:
        return words, write_duration(value)
    return name.replace("_", " "), _told(value)


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_told(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_told, value))
    return "yes" if value is True else str(value)


def _figures(run: ReportedRun) -> list[tuple[str, Any, str]]:
    """Every figure that is one number or text, with its definition."""
    meanings = dict(listed(Figures)) if run.figures is not None else {}
    return [(path, value, meanings.get(path, "")) for path, value in _flat(run.metrics)]


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif not isinstance(value, list | tuple):
            yield f"{before}{name}", value
        elif value and not isinstance(value[0], Mapping | list):
            yield f"{before}{name}", ", ".join(map(str, value[:12]))
