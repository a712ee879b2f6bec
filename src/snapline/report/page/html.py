"""The pieces of a page: sections, figures with the table behind each, and the document around them.

Every value goes through `escape`: what was read from a run is text, and never markup. The document forbids
itself to fetch anything (its content security policy), so it can be opened from anywhere, and sent around.
"""

import base64
import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, count
from typing import Any

from snapline.report.charts.canvas import NARROW, WIDE, Chart
from snapline.report.page.style import asset

ROWS_SHOWN_MAX = 300
CSV_CHARS_MAX = 90_000
"""So much of a table is in the file to download; a longer one says that it is not complete."""
PAGE_CHARS_MAX = 1_900_000
"""Of a page that would be longer, the largest files to download are left out, and it says so."""
FILES_CHARS_MIN = 250_000
"""So much of them stays in any case: a page about many runs is long without them."""
_FILE = re.compile(
    r'<a download="([^"]*)" href="data:[^"]*">[^<]*</a>(?: \(the first [\d,]+ of [\d,]+ rows\))?'
)


@dataclass(frozen=True, slots=True)
class DataTable:
    """The numbers behind a chart: the names of the columns, and the rows as plain values."""

    name: str  # of the file in which it is downloaded, without its ending
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


def figure(id: str, heading: str, note: str, chart: Chart, table: DataTable) -> str:
    """A chart in both sizes, with a heading, a sentence on how to read it, and its numbers."""
    drawings = "".join(
        f'<div class="{canvas.name}">{chart(canvas)}</div>' for canvas in (WIDE, NARROW)
    )
    return (
        f'<figure id="{escape(id)}"><figcaption><h3>{escape(heading)}</h3>'
        f"<p>{escape(note)}</p></figcaption>{drawings}{behind(table)}</figure>"
    )


def behind(table: DataTable) -> str:
    """The numbers behind a chart: a table that opens, and a link that saves it as a CSV file."""
    shown = table.rows[:ROWS_SHOWN_MAX]
    more = len(table.rows) - len(shown)
    note = f"<p>{more:,} more rows are in the file.</p>" if more > 0 else ""
    return (
        f"<details><summary>The numbers behind this chart</summary>{grid(table.columns, shown)}"
        f"{note}<p>{download(table)}</p></details>"
    )


def grid(columns: Sequence[str], rows: Iterable[Sequence[Any]], label: str = "table") -> str:
    """A table, in a region that scrolls by itself where it is wider than the page."""
    known = list(rows)
    head = "".join(
        f'<th scope="col"{_aligned(row[at] for row in known)}>{escape(name)}</th>'
        for at, name in enumerate(columns)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in known)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _aligned(values: Iterable[Any]) -> str:
    """The class of a heading above numbers, which stand at the right."""
    known = [value for value in values if value is not None]
    is_number = known and all(type(value) in (int, float) for value in known)
    return ' class="n"' if is_number else ""


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        return f'<td class="n">{escape(plain(value))}</td>'
    words = "" if value is None else str(value)
    kind = ' class="long"' if len(words) > 40 else ""
    return f"<td{kind}>{escape(words)}</td>"


def plain(value: float) -> str:
    """A number in a table: whole ones with separators, others with at most four digits behind 0."""
    if isinstance(value, int):
        return f"{value:,}"
    if math.isfinite(value) and value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"


def download(table: DataTable) -> str:
    """A link that saves a table as a CSV file; its content is in the page itself."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    kept = 0
    for row in table.rows:
        if text.tell() > CSV_CHARS_MAX:
            break
        writer.writerow([_harmless(each) for each in row])
        kept += 1
    cut = kept < len(table.rows)
    note = f" (the first {kept:,} of {len(table.rows):,} rows)" if cut else ""
    name = f"{table.name}.csv"
    return f"{_link(name, 'text/csv', text.getvalue())}{note}"


def _harmless(value: Any) -> Any:
    """A value for a CSV file: a text that a spreadsheet would take for a formula gets an apostrophe."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def download_json(name: str, content: Mapping[str, Any]) -> str:
    """A link that saves a document as JSON."""
    return _link(f"{name}.json", "application/json", json.dumps(content, indent=1, default=str))


def _link(name: str, kind: str, text: str) -> str:
    packed = base64.b64encode(text.encode(errors="replace")).decode()
    return f'<a download="{escape(name)}" href="data:{kind};base64,{packed}">{escape(name)}</a>'


def bounded(body: str) -> str:
    """The body of a page, without the largest of its files if it would be too long."""
    files = sorted((len(found[0]), at) for at, found in enumerate(_FILE.finditer(body)))
    rest = len(body) - sum(size for size, _ in files)
    most = max(FILES_CHARS_MIN, PAGE_CHARS_MAX - rest)
    totals = accumulate(size for size, _ in files)
    kept = {at for total, (_, at) in zip(totals, files, strict=True) if total <= most}
    place = count()

    def shown(found: re.Match[str]) -> str:
        told = f"{found[1]} (left out, because the page would be too large)"
        return found[0] if next(place) in kept else told

    return _FILE.sub(shown, body)


def section(id: str, heading: str, *parts: str) -> str:
    """A section of a page; empty if it has nothing to show."""
    body = "".join(parts)
    if not body:
        return ""
    return f'<section id="{escape(id)}"><h2>{escape(heading)}</h2>{body}</section>'


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Names with their values, as a list of definitions."""
    told = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in rows)
    return f'<dl class="pairs">{told}</dl>' if told else ""


def document(title: str, body: str, *, extra: str = "", reaches: str = "'none'") -> str:
    """A whole page. `extra` goes into its head, and `reaches` is what it may connect to: nothing."""
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        f"img-src data:; connect-src {reaches}; base-uri 'none'; form-action 'none'"
    )
    body = bounded(body)
    return encodable(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{asset('style.css')}</style>{extra}</head>"
        f'<body><main class="snapline">{body}</main><script>{asset("hover.js")}</script></body></html>\n'
    )


def fragment(body: str) -> str:
    """A part of a page that stands in another one, as in a notebook: with its style, without a script."""
    return encodable(
        f'<style>{asset("style.css")}</style><div class="snapline fragment">{body}</div>'
    )


def encodable(text: str) -> str:
    """The text as a file takes it: a byte that is no text, as in the name of a file, becomes an escape."""
    return text.encode(errors="backslashreplace").decode()
