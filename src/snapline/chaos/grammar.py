"""A small grammar: statements of bare words and `key=value` words, each form a template.

`kill slot=SLOTS at=TIME` is a template: small words stand for themselves, capital words for a value. A
statement takes the form whose bare words and keys it has, in any order of the keys. Nothing is accepted
in silence: an error shows the statement, carets under the word concerned, and what was expected there.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

from snapline.durations import read_duration
from snapline.errors import FaultSyntaxError
from snapline.ids import Millis, SlotId

T = TypeVar("T")

_WORD = re.compile(r"\S+")
_NAME = re.compile(r"[A-Za-z][\w.-]*")


def _span(text: str) -> Millis:
    ms = read_duration(text)
    if ms == 0:
        raise ValueError("it must be longer than 0")
    return ms


def _number(text: str, at_least: int = 0) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < at_least:
        raise ValueError(f"it must be a whole number from {at_least} on")
    return int(text)


def _slots(text: str) -> tuple[SlotId, ...]:
    slots = tuple(_number(part) for part in text.split(","))
    if len(set(slots)) < len(slots):
        raise ValueError("a slot is named twice")
    return slots


def _peers(text: str) -> tuple[SlotId | None, ...]:
    peers = tuple(None if part == "coordinator" else _number(part) for part in text.split(","))
    if len(set(peers)) < len(peers):
        raise ValueError("one of them is named twice")
    return peers


def _percent(text: str) -> int:
    if not text.endswith("%") or not 1 <= _number(text[:-1]) <= 100:
        raise ValueError("it must be from 1% to 100%")
    return int(text[:-1])


def _phase(text: str) -> str:
    if text not in ("recovery", "round"):
        raise ValueError("there is nothing else to wait for")
    return text


def _record(text: str) -> str:
    if text not in ("decision", "manifest"):
        raise ValueError("there is no other record")
    return text


def _pool(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("it must be a name")
    return text


_KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "SLOT": (_number, "one slot, such as 1"),
    "SLOTS": (_slots, "slots, such as 1 or 0,2"),
    "POOL": (_pool, "a pool of the dataflow, such as model"),
    "PEERS": (_peers, "coordinator or a slot, such as 2, or several, such as 2,3,coordinator"),
    "PERCENT": (_percent, "a percentage, such as 30%"),
    "TIME": (read_duration, "a time, such as 800ms, 1.5s or 2m"),
    "SPAN": (_span, "a duration, such as 500ms, 1.5s or 2m"),
    "COUNT": (lambda text: _number(text, at_least=1), "a number, such as 137"),
    "PHASE": (_phase, "recovery or round"),
    "RECORD": (_record, "decision or manifest"),
}


@dataclass(frozen=True, slots=True)
class StatementForm(Generic[T]):
    """One form of statement, and what to make of its values in the order of the template."""

    template: str
    make: Callable[..., T]

    @property
    def bare(self) -> tuple[str, ...]:
        """The words without a key."""
        return tuple(word for word in self.template.split() if "=" not in word)

    @property
    def keyed(self) -> dict[str, str]:
        """The kind of value behind each key."""
        pairs = (word.partition("=") for word in self.template.split() if "=" in word)
        return {key: kind for key, _, kind in pairs}


def read_statements(forms: Sequence[StatementForm[T]], text: str) -> Iterator[T]:
    """What the statements of a text mean. They end with `;` or the line; `#` begins a comment."""
    for line in text.splitlines():
        for statement in line.partition("#")[0].split(";"):
            if statement.strip():
                yield _Statement(statement.strip()).read(forms)


class _Statement:
    def __init__(self, text: str) -> None:
        self.text = text
        self.bare: list[re.Match[str]] = []
        self.keyed: dict[str, re.Match[str]] = {}
        for word in _WORD.finditer(text):
            key, equals, _ = word[0].partition("=")
            if not equals:
                self.bare.append(word)
            elif not self.bare:
                self.fail(word, "a statement begins with what is to happen, such as kill")
            elif key in self.keyed:
                self.fail(word, f"{key}= stands here twice")
            else:
                self.keyed[key] = word

    def read(self, forms: Sequence[StatementForm[T]]) -> T:
        form = self._by_keys(self._by_bare_words(forms))
        bare, values = iter(self.bare), []
        for word in form.template.split():
            key, equals, kind = word.rpartition("=")
            said = self.keyed[key] if equals else next(bare)
            if kind.isupper():
                values.append(self._value(said, kind))
        try:
            return form.make(*values)
        except ValueError as error:
            self.fail(None, str(error))

    def _by_bare_words(self, forms: Sequence[StatementForm[T]]) -> list[StatementForm[T]]:
        possible = list(forms)
        for i, word in enumerate(self.bare):
            expected = _names([form.bare[i] for form in possible if len(form.bare) > i])
            possible = [form for form in possible if _stands(word[0], form.bare, i)]
            if not possible:
                wanted = f"expected {expected}" if expected else "expected key=value words only"
                self.fail(word, f"{word[0]!r} is not known here; {wanted}")
        count = len(self.bare)
        complete = [form for form in possible if len(form.bare) == count]
        if not complete:
            self.fail(None, f"expected {_names([form.bare[count] for form in possible])}")
        return complete

    def _by_keys(self, possible: Sequence[StatementForm[T]]) -> StatementForm[T]:
        known = [f"{key}=" for form in possible for key in form.keyed]
        for key, word in self.keyed.items():
            if f"{key}=" not in known:
                self.fail(word, f"{key}= is not known here; expected {_names(known)}")
        fitting = [form for form in possible if all(key in form.keyed for key in self.keyed)]
        for form in fitting:
            if len(form.keyed) == len(self.keyed):
                return form
        if fitting:
            missing = [
                " ".join(
                    f"{key}={kind}" for key, kind in form.keyed.items() if key not in self.keyed
                )
                for form in fitting
            ]
            self.fail(None, f"something is missing; expected {_names(missing)}")
        clash = [key for key in self.keyed if not all(key in form.keyed for form in possible)]
        names = " and ".join(f"{key}=" for key in clash)
        self.fail(self.keyed[clash[-1]], f"{names} do not go together; expected one of them")

    def _value(self, word: re.Match[str], kind: str) -> object:
        read, description = _KINDS[kind]
        text = word[0].rpartition("=")[2]
        try:
            return read(text)
        except ValueError as error:
            self.fail(word, f"{text!r} is not {description}: {error}")

    def fail(self, word: re.Match[str] | None, problem: str) -> NoReturn:
        """Say what is wrong, under the word concerned, or behind the statement."""
        start, stop = word.span() if word else (len(self.text), len(self.text) + 1)
        carets = " " * start + "^" * (stop - start)
        raise FaultSyntaxError(f"{problem}\n  {self.text}\n  {carets}")


def _stands(word: str, bare: tuple[str, ...], i: int) -> bool:
    return len(bare) > i and (bare[i] == word or bare[i].isupper())


def _names(words: Sequence[str]) -> str:
    """`a, b or c`, each once, kinds of values in their own words."""
    distinct = [_KINDS[word][1] if word in _KINDS else word for word in dict.fromkeys(words)]
    *most, last = distinct or [""]
    return f"{', '.join(most)} or {last}" if most else last
