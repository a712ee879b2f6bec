"""The style sheet of all pages, and the few lines of script that show what one points at.

Both are files of their own beside this one, in the languages that browsers speak, and stand in every page.
"""

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """A file that Snapline brings with it for its pages: `style.css`, `hover.js`, `live.js`."""
    return (files(__package__) / name).read_text(encoding="utf-8")
