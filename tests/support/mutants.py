"""A test of the judge itself: right outputs, broken on purpose, each in one way that has one name.

A *case* is a small input with its right output. A *mutant* changes the output in one place; `MUTANTS` says
which cause must lead the judgement then. Cases are drawn from a seed and laid into common tables with a
column `case`, so that one call, or one job, judges all of them. The confusion matrix (mutant against
leading cause) of a good judge is diagonal.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from snapline.batch import Batch, Varlen
from snapline.ids import Millis
from snapline.validate.causes import Cause
from snapline.validate.judged import Judged

SIZE_MS: Final[Millis] = 100
UNTOUCHED: Final = "untouched"
"""The name of what is no mutant: a right output."""

_TRIES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Cases:
    """Many cases in common tables."""

    inputs: Batch
    outputs: Batch
    late: Batch
    size_ms: Millis
    mutants: tuple[str, ...]  # of case 0, 1, ...

    def expected(self, case: int) -> Cause | None:
        """The cause that must lead the judgement of a case."""
        return None if self.mutants[case] == UNTOUCHED else MUTANTS[self.mutants[case]][0]

    def confusion(self, judged: Mapping[int, Judged]) -> Mapping[tuple[str, Cause | None], int]:
        """How often each mutant was given each leading cause (None: all is fine)."""
        pairs = zip(
            self.mutants, (judged[case].leading for case in range(len(self.mutants))), strict=True
        )
        return Counter(pairs)


def cases(count: int, seed: int, *, posts: bool = True) -> Cases:
    """So many cases, a tenth of them untouched. Without POSTs the output has the columns of one stream."""
    dice = random.Random(f"{seed}/{count}/{posts}")
    names = [UNTOUCHED, *(name for name in MUTANTS if posts or name != _NEEDS_POSTS)]
    mutants = tuple(names[case % len(names)] for case in range(count))
    drawn = [_mutated(dice, name, posts) for name in mutants]
    return Cases(
        _inputs(drawn, posts), _outputs(drawn, posts, dice), _late(drawn), SIZE_MS, mutants
    )


@dataclass(frozen=True, slots=True)
class _Event:
    id: int
    time: Millis
    resource: int
    post: bool

    @property
    def window(self) -> Millis:
        return self.time - self.time % SIZE_MS


@dataclass(frozen=True, slots=True)
class _Output:
    resource: int
    window: Millis
    gets: list[int] = field(default_factory=list)
    posts: list[int] = field(default_factory=list)
    extra: tuple[int, int] = (0, 0)  # how far the counts are off


@dataclass(slots=True)
class _Case:
    events: list[_Event]
    outputs: list[_Output]
    late: list[int]
    timely: list[int] = field(default_factory=list)  # events that cannot have been late

    def swap(self, old: _Output, *new: _Output) -> None:
        """Put other outputs in the place of one."""
        self.outputs = [output for output in self.outputs if output is not old] + list(new)


def _case(dice: random.Random, posts: bool) -> _Case:
    """A random input with its right output."""
    count = dice.randint(2, 24)
    resources = dice.sample(range(-5, 50), dice.randint(1, 4))
    first, windows = dice.randint(-2, 50) * SIZE_MS, dice.randint(1, 4)
    ids = dice.sample(range(1 << 56), count)
    events = [
        _Event(
            id,
            first + dice.randrange(windows * SIZE_MS),
            dice.choice(resources),
            posts and dice.random() < 0.4,
        )
        for id in ids
    ]
    late = [event.id for event in events if dice.random() < 0.1]
    outputs: dict[tuple[int, Millis], _Output] = {}
    for event in events:
        if event.id not in late:
            place = (event.resource, event.window)
            output = outputs.setdefault(place, _Output(*place))
            (output.posts if event.post else output.gets).append(event.id)
    return _Case(events, list(outputs.values()), late)


def _mutated(dice: random.Random, mutant: str, posts: bool) -> _Case:
    """A random case, changed by this mutant."""
    for _ in range(_TRIES):
        case = _case(dice, posts)
        if mutant == UNTOUCHED or MUTANTS[mutant][1](case, dice):
            return case
    raise AssertionError(f"no random case can be changed by {mutant!r}")


# The mutants. Each says whether the case could be changed.

Mutate: TypeAlias = Callable[[_Case, random.Random], bool]


def _drop_one(case: _Case, dice: random.Random) -> bool:
    last = max((output.window for output in case.outputs), default=0)
    ends = sum(output.window == last for output in case.outputs)
    inner = [output for output in case.outputs if output.window < last or ends > 1]
    if inner:
        case.swap(dice.choice(inner))
    return bool(inner)


def _duplicate_one(case: _Case, dice: random.Random) -> bool:
    if case.outputs:
        case.outputs.append(replace(dice.choice(case.outputs)))
    return bool(case.outputs)


def _move_one(case: _Case, dice: random.Random) -> bool:
    if not case.outputs:
        return False
    old = dice.choice(case.outputs)
    case.swap(old, replace(old, window=old.window + dice.choice((-SIZE_MS, SIZE_MS))))
    return True


def _swap_pairs(case: _Case, dice: random.Random) -> bool:
    joined = [output for output in case.outputs if output.gets and output.posts]
    if len(joined) < 2:
        return False
    one, other = dice.sample(joined, 2)
    case.swap(one, replace(one, posts=other.posts))
    case.swap(other, replace(other, posts=one.posts))
    return True


def _change_value(case: _Case, dice: random.Random) -> bool:
    if not case.outputs:
        return False
    old = dice.choice(case.outputs)
    by = dice.choice((-1, 1, 10))
    case.swap(old, replace(old, extra=(by, 0) if not old.posts or dice.random() < 0.5 else (0, by)))
    return True


def _invent(case: _Case, dice: random.Random) -> bool:
    known = {event.id for event in case.events}
    ids = [
        id for id in (dice.randrange(1 << 57) for _ in range(dice.randint(0, 3))) if id not in known
    ]
    somewhere = dice.choice(case.events)
    resource, window = somewhere.resource, somewhere.window
    if dice.random() < 0.5:  # of nobody
        resource, window = dice.randint(60, 90), window + dice.randint(-3, 3) * SIZE_MS
    case.outputs.append(_Output(resource, window, ids))
    return True


def _repeat_inside(case: _Case, dice: random.Random) -> bool:
    for old in dice.sample(case.outputs, len(case.outputs)):
        if len(old.gets) > 1:
            case.swap(old, replace(old, gets=[old.gets[0], *old.gets[:-1]]))
            return True
        if len(old.posts) > 1:
            case.swap(old, replace(old, posts=[old.posts[0], *old.posts[:-1]]))
            return True
    return False


def _late_and_windowed(case: _Case, dice: random.Random) -> bool:
    late = [event for event in case.events if event.id in case.late]
    if late and dice.random() < 0.5:
        event = dice.choice(late)
        place = (event.resource, event.window)
        old = next((o for o in case.outputs if (o.resource, o.window) == place), _Output(*place))
        gets, posts = ([], [event.id]) if event.post else ([event.id], [])
        case.swap(old, replace(old, gets=old.gets + gets, posts=old.posts + posts))
        return True
    windowed = [event.id for event in case.events if event.id not in case.late]
    if windowed:
        case.late.append(dice.choice(windowed))
    return bool(windowed)


def _split_one(case: _Case, dice: random.Random) -> bool:
    large = [output for output in case.outputs if len(output.gets) + len(output.posts) > 1]
    if not large:
        return False
    old = dice.choice(large)
    ids = [*((id, False) for id in old.gets), *((id, True) for id in old.posts)]
    dice.shuffle(ids)
    cut = dice.randint(1, len(ids) - 1)
    case.swap(old, *(_part_of(old, part) for part in (ids[:cut], ids[cut:])))
    return True


def _part_of(old: _Output, ids: list[tuple[int, bool]]) -> _Output:
    gets, posts = ([id for id, post in ids if post is side] for side in (False, True))
    return replace(old, gets=gets, posts=posts)


def _call_late(case: _Case, dice: random.Random) -> bool:
    windowed = [output for output in case.outputs if output.gets or output.posts]
    if not windowed:
        return False
    old = dice.choice(windowed)
    event = dice.choice(old.gets + old.posts)
    gets, posts = ([id for id in ids if id != event] for ids in (old.gets, old.posts))
    case.swap(old, *([replace(old, gets=gets, posts=posts)] if gets or posts else []))
    case.late.append(event)
    case.timely.append(event)
    return True


def _truncate(case: _Case, dice: random.Random) -> bool:
    if not case.outputs:
        return False
    end = dice.choice(case.outputs).window
    case.outputs = [output for output in case.outputs if output.window < end]
    return True


_NEEDS_POSTS: Final = "swap two pairs"
MUTANTS: Final[Mapping[str, tuple[Cause, Mutate]]] = {
    "drop one": (Cause.MISSING, _drop_one),
    "duplicate one": (Cause.DUPLICATE, _duplicate_one),
    "move one to a neighbouring window": (Cause.WRONG_WINDOW, _move_one),
    _NEEDS_POSTS: (Cause.WRONG_PAIR, _swap_pairs),
    "change a value": (Cause.WRONG_VALUE, _change_value),
    "invent one": (Cause.INVENTED, _invent),
    "duplicate inside the state": (Cause.TWICE_INSIDE, _repeat_inside),
    "late and windowed": (Cause.LATE_AND_WINDOWED, _late_and_windowed),
    "split one into two": (Cause.SPLIT, _split_one),
    "call late what was in time": (Cause.NOT_LATE, _call_late),
    "truncate the end": (Cause.TRUNCATED, _truncate),
}

# Into tables.


def _inputs(drawn: Sequence[_Case], posts: bool) -> Batch:
    rows = [(number, event) for number, case in enumerate(drawn) for event in case.events]
    table = Batch.of(
        case=[number for number, _ in rows],
        id=[event.id for _, event in rows],
        time=[event.time for _, event in rows],
        resource=[event.resource for _, event in rows],
        watermark=[_watermark(drawn[number], event) for number, event in rows],
    )
    return (
        table.with_columns(**Batch.of(post=[e.post for _, e in rows]).columns) if posts else table
    )


def _watermark(case: _Case, event: _Event) -> Millis:
    """Those that are late may be, unless a mutant has made them so."""
    return event.time + (2 * SIZE_MS if event.id not in case.timely else 0)


def _outputs(drawn: Iterable[_Case], posts: bool, dice: random.Random) -> Batch:
    """The outputs of all cases in any order, their positions in any other."""
    rows = [
        (number, position, output)
        for number, case in enumerate(drawn)
        for position, output in zip(
            dice.sample(range(99), len(case.outputs)), case.outputs, strict=True
        )
    ]
    dice.shuffle(rows)
    gets = [dice.sample(output.gets, len(output.gets)) for *_, output in rows]
    table = Batch.of(
        case=[number for number, *_ in rows],
        position=[position for _, position, _ in rows],
        resource=[output.resource for *_, output in rows],
        window=[output.window for *_, output in rows],
    )
    counts = [len(output.gets) + output.extra[0] for *_, output in rows]
    if not posts:
        lists = Batch.of(count=counts, ids=Varlen.of("list", gets))
    else:
        lists = Batch.of(
            gets=counts,
            get_ids=Varlen.of("list", gets),
            posts=[len(output.posts) + output.extra[1] for *_, output in rows],
            post_ids=Varlen.of("list", [dice.sample(o.posts, len(o.posts)) for *_, o in rows]),
        )
    return table.with_columns(**lists.columns)


def _late(drawn: Iterable[_Case]) -> Batch:
    rows = [
        (number, position, id)
        for number, case in enumerate(drawn)
        for position, id in enumerate(case.late)
    ]
    return Batch.of(
        case=[number for number, *_ in rows],
        position=[position for _, position, _ in rows],
        id=[id for *_, id in rows],
    )
