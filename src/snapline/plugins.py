"""What can be chosen by name: Snapline's own things, and those that installed distributions bring.

A distribution brings a protocol, a workload or a system under test by an entry point in the group
`snapline.protocols`, `snapline.workloads` or `snapline.systems`. Nothing has to change here for it. Entry
points are looked for when a name is asked for that Snapline does not have itself, and code of others is
executed only when its name is used or when everything is listed. So importing Snapline costs nothing more,
and a distribution that is broken breaks nobody but itself.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from snapline.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_RESERVED: Final = {
    "all": "'all' means all that there are",
    "snapline": "'snapline' means Snapline itself",
}
"""Names that mean something else where a name is expected, and what."""


class Catalogue(Mapping[str, T], Generic[T]):
    """Things of one kind by name: first Snapline's own, then those of others that can be used.

    A name that cannot be used, because its distribution is broken or because it is taken or unfit, is
    refused with a UsageError when it is looked up, and left out when everything is listed (`problems` tells
    why).
    """

    def __init__(self, noun: str, kind: type[T], own: dict[str, T], home: str) -> None:
        self.own: Final = own  #: what Snapline has itself
        self._noun = noun
        self._kind = kind
        self._home = home  #: the module with Snapline's own
        self._found: dict[str, list[EntryPoint]] | None = None  #: None: not looked for yet
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """The thing of this name. Raises KeyError if nobody has it, and UsageError if it is unusable."""
        if name in self.own:
            return self.own[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name, self._brought()[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._brought()

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (name for name in self._brought() if name not in self.own and self._usable(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def problems(self) -> list[str]:
        """Why things that others bring cannot be used, a sentence for each of them."""
        found = []
        for name, points in self._brought().items():
            if name in self.own:
                homes = " and ".join(map(_home, points))
                found.append(
                    f"the {self._noun} {name!r} of {homes} is refused: {self._home} has one of this "
                    "name, and that one is used"
                )
            elif (problem := self._problem(name)) is not None:
                found.append(problem)
        return found

    def _usable(self, name: str) -> bool:
        return self._problem(name) is None

    def _problem(self, name: str) -> str | None:
        try:
            self[name]
        except UsageError as error:
            return str(error)
        return None

    def _brought(self) -> dict[str, list["EntryPoint"]]:
        """The entry points of our group, by name."""
        if self._found is None:
            from importlib.metadata import entry_points  # it is slow to import, and rarely needed

            self._found = {}
            points = entry_points(group=f"snapline.{self._noun}s")
            for point in sorted(points, key=lambda point: (point.name, _home(point))):
                self._found.setdefault(point.name, []).append(point)
        return self._found

    def _load(self, name: str, points: list["EntryPoint"]) -> T:
        if len(points) > 1:
            homes = " and by ".join(map(_home, points))
            raise UsageError(
                f"the {self._noun} {name!r} is brought by {homes}: uninstall all but one of them"
            )
        what = f"the {self._noun} {name!r} of {_home(points[0])}"
        if why := unfit(name):
            raise UsageError(f"{what} is refused: {why}")
        try:
            thing = points[0].load()
        except (Exception, SystemExit) as error:
            story = str(error).strip().partition("\n")[0]
            kind = "" if isinstance(error, UsageError) else f"{type(error).__name__}: "
            raise UsageError(f"{what} cannot be loaded: {kind}{story}") from error
        if not isinstance(thing, self._kind):
            raise UsageError(f"{what} is a {type(thing).__name__}, not a {self._kind.__name__}")
        if (called := getattr(thing, "name", name)) != name:
            raise UsageError(f"{what} calls itself {called!r}: give its entry point the same name")
        return thing


def unfit(name: str) -> str | None:
    """Why a name cannot be the name of something; None if it can.

    Names are written in a shell, beside words that mean something else and beside files.
    """
    if name in _RESERVED:
        return f"{_RESERVED[name]}, so it needs another name"
    if not _NAME.fullmatch(name):
        return (
            "a name has small letters and digits, begins with a letter, and may have - and _ inside"
        )
    return None


def _home(point: "EntryPoint") -> str:
    """Where something comes from: its distribution, with the module and the name in it."""
    if point.dist is None:
        return point.value
    return f"the distribution {point.dist.name} {point.dist.version} ({point.value})"
