"""What reaches a terminal: all that the command line prints goes through this module.

Names, messages and rows come from the files of a run, and who made those may have written them for the
terminal: sequences that move its cursor or change its title, characters that turn the direction of a line,
words in the markup with which our own text is coloured. So every console made here shows such characters as
escapes (`\\x1b`), and a value that becomes part of a sentence goes through `escape`, which also keeps it on
one line and takes its markup literally.

Results go to standard output, everything said meanwhile to standard error, so that `--json` and pipes stay
clean. Off a terminal there are no bars and no colours, lines are as wide as they need, and end without
blanks. Where both streams lead into one pipe or file, lines stand there in the order in which they were
printed: each stream is flushed before the other is written to.
"""

import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import typer
from rich import markup
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from snapline.runs.interrupt import Interrupted

PIPE_WIDTH = 120
INTERRUPTED = 130
NOBODY_READS = 141  # the exit code of a command that SIGPIPE has ended
JSON_VERSION = 1
"""The version of what `--json` prints: raised if a key changes its meaning or goes, not for a new key."""
NOTHING_SAID = "interrupted: there is no verdict on what ran until then"

#: control characters but the newline, Unicode's marks that turn or break lines, and lone surrogates
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_FILLED = re.compile(r"[ \t]+$", re.MULTILINE)
#: the beginning of a markup tag at the end of a value, which the text behind the value could complete
_OPEN_TAG = re.compile(r"(\\*)(\[(?:[a-z#/@][^\[\]]*)?)$")


def visible(text: str) -> str:
    """The text with every character that moves the cursor, newlines aside, shown as an escape."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape(value: object) -> str:
    """A value as a part of a sentence: on one line, visible, and without markup."""
    return _literal(visible(str(value)).replace("\n", r"\n"))


def escape_lines(value: object) -> str:
    """A text of several lines, visible and without markup; all lines but the first are indented."""
    return _literal(visible(str(value)).strip("\n").replace("\n", "\n  "))


def _literal(text: str) -> str:
    return _OPEN_TAG.sub(r"\1\1\\\2", markup.escape(text))


class VisibleConsole(Console):
    """A console that prints control characters of a text as escapes, so that no text moves the cursor."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, but off a terminal without the blanks with which rich fills lines."""
        if self.is_terminal:
            _flush()
            super().print(*objects, **options)
            return
        with self.capture() as held:
            super().print(*objects, **options)
        _write(self.file, _FILLED.sub("", held.get()))

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces of what is printed, made visible; the console's own control codes stay as they are."""
        for segment in super().render(renderable, options):
            if segment.control or not _UNSEEN.search(segment.text):
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


def results() -> Console:
    """The console for results: standard output."""
    return _console(stderr=False)


def messages() -> Console:
    """The console for everything said meanwhile: standard error."""
    return _console(stderr=True)


def _console(stderr: bool) -> Console:
    console = VisibleConsole(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def tell_live_page(url: str | None) -> None:
    """Say where the live page is that a process beside this one serves, or that there is none."""
    if url is None:
        messages().print("[yellow]there is no live page:[/] its process did not start")
    else:
        messages().print(f"live page, for this machine only: {escape(url)}", soft_wrap=True)


def print_json(document: Mapping[str, Any], indent: int | None = 2) -> None:
    """Print one JSON document to standard output."""
    text = json.dumps(document, indent=indent)
    # DEL is the one control character that JSON does not escape.
    _write(sys.stdout, text.replace("\x7f", "\\u007f") + "\n")


def print_csv(rows: Iterable[Sequence[object]]) -> None:
    """Print rows as CSV to standard output; here, too, characters that move the cursor are escaped."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([_shown(value) for value in row])
    _write(sys.stdout, text.getvalue())


def write_message(text: str) -> None:
    """Write a line to `sys.stderr` as it is now: a live table puts its own there to make room for it."""
    _write(sys.stderr, visible(text) + "\n")


def _write(stream: IO[str], text: str) -> None:
    """Write to one of the two streams, after all that was written to either of them before.

    If nobody reads any more (`snapline runs | head -1`), the command ends with `NOBODY_READS`.
    """
    try:
        _flush()
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        for each in (sys.stdout, sys.stderr):
            try:
                each.flush()
            except BrokenPipeError:
                # Python flushes it once more at exit: what it still holds is thrown away then.
                os.dup2(os.open(os.devnull, os.O_WRONLY), each.fileno())
        raise SystemExit(NOBODY_READS) from None


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _shown(value: object) -> object:
    return visible(value).replace("\n", r"\n") if isinstance(value, str) else value


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a command with a message and an exit code, not with a traceback."""
    try:
        yield
    except Interrupted:
        raise  # `main` handles it, and knows the signal
    except KeyboardInterrupt:
        messages().print(NOTHING_SAID)
        raise typer.Exit(INTERRUPTED) from None
