"""Chains of numbered links, one for each row: a link is put in front, and a chain is walked from there.

`heads` has for every row the first link of its chain, `before` for every link the one behind it. Both hold
the number of the link and 1, so that zeros, as new memory holds them, mean that there is none.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.kernels.forms import loop_of

Int64s: TypeAlias = npt.NDArray[np.int64]

_FEW: Final = 12


def push(rows: Int64s, first: int, heads: Int64s, before: Int64s) -> None:
    """Put the links first, first + 1, ... in front of the chains of these rows, one after the other."""
    count = len(rows)
    if count <= _FEW:
        for link, row in enumerate(rows.tolist(), first):
            before[link] = heads[row]
            heads[row] = link + 1
        return
    bits = count.bit_length()
    packed = np.sort((rows << bits) | np.arange(count))
    links = first + (packed & ((1 << bits) - 1))
    packed >>= bits
    begins = np.ones(count, np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=begins[1:])
    before[links[1:]] = links[:-1] + 1
    before[links[begins]] = heads[packed[begins]]
    heads[rows] = np.arange(first + 1, first + count + 1)  # the last of a row is kept


@loop_of(push, "const int64[:]", "int64", "int64[:]", "int64[:]")
def _push(rows: Int64s, first: int, heads: Int64s, before: Int64s) -> None:
    for i in range(len(rows)):
        row = rows[i]
        before[first + i] = heads[row]
        heads[row] = first + i + 1


def walk(rows: Int64s, heads: Int64s, before: Int64s, most: int) -> tuple[Int64s, Int64s]:
    """The links of the chains of these rows: positions in `rows`, and links; a row below 0 has none.

    First comes the first link of each, then the second of each that has one, and so on, at most so many of
    each chain; `most` is at least 1.
    """
    firsts = heads[rows]
    firsts[rows < 0] = 0
    positions = firsts.nonzero()[0]
    links = firsts[positions] - 1
    steps = [(positions, links)]
    while len(links) > _FEW and len(steps) < most:
        links = before[links]
        more = links.nonzero()[0]
        positions, links = positions[more], links[more] - 1
        steps.append((positions, links))
    if len(links) and len(steps) < most:
        left = most - len(steps)
        steps.append(_walk_few(positions.tolist(), links.tolist(), before, left))
    return np.concatenate([p for p, _ in steps]), np.concatenate([r for _, r in steps])


def _walk_few(
    positions: list[int], links: list[int], before: Int64s, left: int
) -> tuple[Int64s, Int64s]:
    """Walk `left` more links of a few chains in the same order: numpy would be slow for so few."""
    view, met = before.data, len(positions)
    end = met  # of those that are equally far from the first link
    for at, (position, link) in enumerate(
        zip(positions, links, strict=True)
    ):  # which grow meanwhile
        if at == end:
            end, left = len(links), left - 1
            if not left:
                break
        if step := view[link]:
            positions.append(position)
            links.append(step - 1)
    return np.array(positions[met:], np.int64), np.array(links[met:], np.int64)


@loop_of(walk, "const int64[:]", "int64[:]", "int64[:]", "int64")
def _walk(rows: Int64s, heads: Int64s, before: Int64s, most: int) -> tuple[Int64s, Int64s]:
    count = 0
    for row in rows:
        link = heads[row] if row >= 0 else 0
        left = most
        while link != 0 and left > 0:
            count += 1
            left -= 1
            link = before[link - 1]
    positions = np.empty(count, np.int64)
    links = np.empty(count, np.int64)
    known = 0
    for i in range(len(rows)):
        if rows[i] >= 0 and heads[rows[i]] != 0:
            positions[known] = i
            links[known] = heads[rows[i]] - 1
            known += 1
    at = 0
    while known < count:  # each link that was found leads to the next of its chain
        link = before[links[at]]
        if link != 0:
            positions[known] = positions[at]
            links[known] = link - 1
            known += 1
        at += 1
    return positions, links
