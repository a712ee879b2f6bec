"""Faults in a file: `@plan.txt` stands for the statements of that file, wherever faults are named.

One statement a line, or several with `;` between them; `#` begins a comment.
"""

from pathlib import Path

from snapline.chaos.faults import describe, parse
from snapline.errors import FaultSyntaxError, UsageError


def read_plan(text: str) -> str:
    """The statements of a text in one line; of a text that begins with `@`, those of the file it names."""
    named = text.strip()
    if not named.startswith("@"):
        if named and " " not in named and Path(named).is_file():
            raise UsageError(f"{named} is a file: to have its faults, name it as @{named}")
        return describe(parse(text))
    path = Path(named[1:])
    try:
        statements = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"cannot read the faults in {path}: {why}") from error
    try:
        return describe(parse(statements))
    except FaultSyntaxError as error:
        raise FaultSyntaxError(f"in {path}: {error}") from error
