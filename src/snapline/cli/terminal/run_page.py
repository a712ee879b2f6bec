"""What `snapline runs show` prints: one run on a page, from the JSON that its directory holds.

The page is made of whatever is there. A field that an older or newer Snapline wrote, or that somebody
changed by hand to another type, is shown as it is and never ends the command; a list or a text that is too
long for a page is cut off. The names of fields say their units (`interval_ms`, `restart_s`), and so how to
print them.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich.table import Table

from snapline.cli.terminal.console import escape, escape_lines, results
from snapline.cli.terminal.summary import VERDICTS, verdict_line
from snapline.durations import LONGEST_MS, write_duration
from snapline.wording import latency, plural, size

LIST_MAX: Final = 8
FIELDS_MAX: Final = 16
TEXT_MAX: Final = 500
PROBLEMS_MAX: Final = 3
_YEAR_2001_S: Final = 1_000_000_000
_YEAR_9999_S: Final = 253_000_000_000
_RATIOS: Final = ("overhead", "ratio", "percent")

#: fields that other parts of the page show, or that mean nothing to people
_NOT_TOLD: Final = {
    *("version", "id", "faults", "origin_s", "cut", "meanings"),
    *("killed_pids", "rollbacks", "failures", "sentence"),
}


def print_page(name: str, path: str, spec: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Print all that is known about a run; `result` has `kept` and `because` in any case."""
    out = results()
    out.print(f"[bold]{escape(name)}[/]: {escape(path)}", soft_wrap=True)
    kept, because = str(result.get("kept")), short(result.get("because"))
    if kept in VERDICTS:
        out.print(verdict_line(kept, because), soft_wrap=True)
    else:
        out.print(f"[bold yellow]not finished[/]: {escape_lines(because)}", soft_wrap=True)
    for problem in _problems(result.get("problems")):
        out.print(f"  {escape(problem)}", soft_wrap=True)
    for title, rows in (
        ("what was run", list(_spec_rows(spec))),
        ("faults", list(_fault_rows(spec.get("faults"), result.get("faults")))),
        ("guarantees", list(_rows(result.get("guarantees")))),
        ("how it went", list(_rows(result.get("metrics")))),
        ("rows published", list(_rows(result.get("rows")))),
    ):
        if rows:
            out.print(f"[bold]{title}[/]")
            out.print(_table(rows))


def _table(rows: list[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(style="cyan", no_wrap=True, max_width=40)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(escape(name), escape(text))
    return table


def _problems(problems: Any) -> Iterator[str]:
    """All problems but the first, which is in the verdict."""
    told = problems if isinstance(problems, list) else []
    for problem in told[1 : 1 + PROBLEMS_MAX]:
        if isinstance(problem, dict):
            kind, record, because = (
                short(problem.get(key)) for key in ("kind", "record", "because")
            )
            yield f"{kind} {record}: {because}"
        else:
            yield short(problem)
    if len(told) > 1 + PROBLEMS_MAX:
        yield f"and {plural(len(told) - 1 - PROBLEMS_MAX, 'more problem')}"


def _spec_rows(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    began = spec.get("origin_s")
    if began is not None:
        yield "input began", date(began)
    for name, value in spec.items():
        if name.endswith("_ms") and type(value) is int and 0 < value <= LONGEST_MS:
            yield ("hot moves after" if name == "hot_ms" else _words(name)), write_duration(value)
        else:
            per_second = " per second" if name == "rate" and value != "max" else ""
            yield from ((words, text + per_second) for words, text in _rows({name: value}))


def _fault_rows(asked: Any, struck: Any) -> Iterator[tuple[str, str]]:
    """What became of each fault; while a run is not over, only which faults were asked for."""
    if not isinstance(struck, list):
        if asked:
            yield "asked for", short(asked)
        return
    for fault in struck[:LIST_MAX]:
        known = fault if isinstance(fault, dict) else {"statement": fault}
        at = known.get("at_ms")
        when = f"struck at {_value('at_ms', at)}" if known.get("struck") else "never struck"
        yield short(known.get("statement")), when
    if len(struck) > LIST_MAX:
        yield "", f"and {len(struck) - LIST_MAX:,} more"


def _rows(values: Any) -> Iterator[tuple[str, str]]:
    """The fields that are shown, each with its name in words and its value as people read it."""
    for name, value in values.items() if isinstance(values, dict) else ():
        if name in _NOT_TOLD or value in (None, "", False) or value == [] or value == {}:
            continue
        yield _words(name), _value(name, value)


def _words(name: str) -> str:
    for unit in ("_ms", "_s", "_us"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")


def _value(name: str, value: Any, depth: int = 0) -> str:
    if isinstance(value, dict) and depth < 2:
        unit = name if name == "bytes" or name.endswith(("_ms", "_s")) else ""
        told = {key: each for key, each in value.items() if each not in (None, 0, "", [])}
        units = {key: key if key.endswith(_RATIOS) else unit or key for key in told}
        parts = (f"{_words(key)} {_value(units[key], told[key], depth + 1)}" for key in told)
        return ", ".join(list(parts)[:FIELDS_MAX]) or "-"
    if isinstance(value, list) and depth < 2:
        shown = ", ".join(_value(name, each, depth + 1) for each in value[:LIST_MAX])
        more = len(value) - LIST_MAX
        return f"{shown} and {more:,} more" if more > 0 else shown
    if value is None:
        return "not within the run"
    return _number(name, value) if _is_number(value) else short(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(name: str, value: float) -> str:
    """A number with the unit that its name has."""
    if abs(value) >= 1e18:  # too large for a run: something else has written it
        return short(value)
    if name.endswith("_ms"):
        return latency(value)
    if name.endswith("_s"):
        return f"{value:,.2f} s"
    if name == "bytes":
        return size(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")


def short(value: Any) -> str:
    """A value that has no better form, cut off where it gets too long."""
    text = str(value)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]} ..."


def date(seconds: Any) -> str:
    """A moment in seconds since 1970, as a date in UTC; anything else as it is."""
    if not _is_number(seconds) or not _YEAR_2001_S <= seconds < _YEAR_9999_S:
        return short(seconds)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
