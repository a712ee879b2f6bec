"""Reads claims: what a paper says about its figures, as comparisons that can be tested.

rate[aligned] >= 0.95 * rate[none]
restart[aligned] < restart[uncoordinated] and restart[aligned] < restart[hmnr]
p50[q12 hot=30] > 10 * p50[q12 hot=0]
restart[hmnr] within 25% of restart[uncoordinated]
invalid[uncoordinated] <= 0.04

claim       one or more of `all`, with "or" between them
all         one or more comparisons, or claims in brackets, with "and" between them
comparison  side, one of < <= > >=, side; or: side "within" PERCENT "of" side
side        figure, NUMBER * figure, or NUMBER
figure      NAME[COLUMNS]; the name is that of a figure, or where a result has it, as bytes.log
columns     values of what varies, as q12 or hot=30 or 'kill slot=1 at=8s'; what is not named is averaged

A claim is a value; nothing of it is ever executed as code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from snapline.errors import UsageError

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)(?P<percent> ?%)?"
    r"|(?P<name>[A-Za-z_][\w.]*)(?:\[(?P<columns>[^\[\]]*)\])?"
    r"|(?P<sign><=|>=|<|>)|(?P<mark>[*()]))"
)
_COLUMN = re.compile(r"'([^']*)'|([^\s,']+)")


class Sign(StrEnum):
    """How the left side of a comparison is claimed to lie to the right one."""

    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="

    @property
    def upwards(self) -> bool:
        """Whether the left side is claimed to be the larger one."""
        return self in (Sign.MORE, Sign.AT_LEAST)

    @property
    def strict(self) -> bool:
        """Whether a difference is claimed: equal sides do not fulfil it."""
        return self in (Sign.LESS, Sign.MORE)


@dataclass(frozen=True, slots=True)
class ClaimSide:
    """One side of a comparison: a multiple of a figure in some columns, or a number."""

    factor: float  # the number itself if there is no figure
    figure: str | None = None
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.figure is None:
            return f"{self.factor:g}"
        times = "" if self.factor == 1 else f"{self.factor:g} * "
        words = (f"'{word}'" if " " in word else word for word in self.columns)
        return f"{times}{self.figure}[{' '.join(words)}]"


@dataclass(frozen=True, slots=True)
class ClaimedOrder:
    """A comparison: the left side lies to the right one as the sign says."""

    left: ClaimSide
    sign: Sign
    right: ClaimSide

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part is claimed."""

    parts: tuple["Claim", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part is claimed."""

    parts: tuple["Claim", ...]


Claim: TypeAlias = ClaimedOrder | AllOf | AnyOf


def orders(claim: Claim) -> Iterator[ClaimedOrder]:
    """All comparisons of a claim, from left to right."""
    if isinstance(claim, ClaimedOrder):
        yield claim
    else:
        for part in claim.parts:
            yield from orders(part)


def read_claim(text: str) -> Claim:
    """Read a claim. Raises UsageError, which says where it is not understood."""
    reader = _Reader(text)
    claim = reader.claim()
    reader.end()
    return claim


class _Reader:
    """Reads a claim from left to right, with one word of foresight."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[re.Match[str]] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise UsageError(f"the claim {text!r} is not understood at {text[at:].strip()!r}")
            self._tokens.append(found)
            at = found.end()

    def claim(self) -> Claim:
        parts = [self._all()]
        while self._take("name", "or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def end(self) -> None:
        if self._tokens:
            raise self._wrong("and, or, or the end")

    def _all(self) -> Claim:
        parts = [self._one()]
        while self._take("name", "and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _one(self) -> Claim:
        if self._take("mark", "("):
            inner = self.claim()
            self._expect("mark", ")")
            return inner
        left = self._side()
        if self._take("name", "within"):
            return self._within(left)
        sign = self._expect("sign")["sign"]
        return self._order(left, Sign(sign), self._side())

    def _within(self, left: ClaimSide) -> Claim:
        """`a within 10% of b`: at most a tenth above b, and b at most a tenth above a."""
        percent = self._expect("percent")["number"]
        self._expect("name", "of")
        right, margin = self._side(), 1 + float(percent) / 100
        above = ClaimSide(right.factor * margin, right.figure, right.columns)
        below = ClaimSide(right.factor / margin, right.figure, right.columns)
        lower = self._order(left, Sign.AT_LEAST, below)
        return AllOf((lower, self._order(left, Sign.AT_MOST, above)))

    def _order(self, left: ClaimSide, sign: Sign, right: ClaimSide) -> ClaimedOrder:
        if left.figure is None and right.figure is None:
            raise UsageError(f"the claim {self._text!r} compares two numbers: name a figure")
        if left.figure is None or left.factor != 1:
            raise UsageError(
                f"the claim {self._text!r}: write the figure by itself on the left, and the number or the "
                "multiple on the right"
            )
        return ClaimedOrder(left, sign, right)

    def _side(self) -> ClaimSide:
        factor = 1.0
        if (number := self._take("number")) is not None:
            if number["percent"]:
                raise UsageError(f"the claim {self._text!r}: a percentage stands behind `within`")
            factor = float(number["number"])
            if not self._take("mark", "*"):
                return ClaimSide(factor)
        found = self._expect("name")
        if found["columns"] is None:
            raise UsageError(
                f"the claim {self._text!r}: say of which columns, as in {found['name']}[aligned]"
            )
        words = tuple(quoted or plain for quoted, plain in _COLUMN.findall(found["columns"]))
        return ClaimSide(factor, found["name"], words)

    def _take(self, group: str, text: str | None = None) -> re.Match[str] | None:
        """The next token if it is of this kind and text; it is left where it is if not."""
        if not self._tokens:
            return None
        found = self._tokens[0]
        if found[group] is None or (text is not None and found[group] != text):
            return None
        return self._tokens.pop(0)

    def _expect(self, group: str, text: str | None = None) -> re.Match[str]:
        found = self._take(group, text)
        if found is None:
            wanted = {"sign": "<, <=, > or >=", "percent": "a percentage", "name": "a figure"}
            raise self._wrong(text or wanted[group])
        return found

    def _wrong(self, wanted: str) -> UsageError:
        found = repr(self._tokens[0][0].strip()) if self._tokens else "the end"
        return UsageError(f"the claim {self._text!r}: {wanted} is expected, not {found}")
