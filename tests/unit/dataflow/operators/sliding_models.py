"""Sliding windows in plain Python, record by record."""

from collections import defaultdict, deque
from typing import Any

from operator_models import Model, Row, Rows, pick


def aggregates_of(rows: list[Row]) -> Row:
    """What a window of these rows has as its results; `rows` are in the order of their times."""
    prices = [row["price"] for row in rows]
    return {
        "n": len(rows),
        "total": sum(prices),
        "average": sum(prices) / len(rows),
        "least": min(prices),
        "most": max(prices),
        "first": prices[0],
        "last": prices[-1],
    }


class SlidingTimeModel(Model):
    """Windows by time: all rows are kept, and every window is computed from them."""

    def __init__(self, size: int, every: int, lateness: int, *keys: str) -> None:
        self.size, self.every, self.lateness, self.keys = size, every, lateness, keys
        self.now = -(10**9)
        self.rows: list[Row] = []

    def windows(self, row: Row) -> list[int]:
        last = row["time"] // self.every * self.every
        return [last - n * self.every for n in range(self.size // self.every)]

    def closes(self, window: int) -> int:
        return window + self.size + self.lateness

    def take(self, port: str, row: Row, found: Rows) -> None:
        if all(self.closes(window) <= self.now for window in self.windows(row)):
            found["late"].append(row)
        else:
            self.rows.append(row)

    def watermark(self, time: int, found: Rows) -> None:
        before, self.now = self.now, max(self.now, time)
        inside: dict[Any, list[Row]] = defaultdict(list)
        for row in self.rows:
            for window in self.windows(row):
                if before < self.closes(window) <= self.now:
                    inside[window, tuple(row[key] for key in self.keys)].append(row)
        for (window, _), rows in inside.items():
            rows.sort(key=lambda row: (row["time"], row["price"]))
            key = pick(rows[0], *self.keys)
            found["out"].append(
                {**key, "window": window, **aggregates_of(rows), "time": rows[-1]["time"]}
            )


class SlidingTimeJoinModel(SlidingTimeModel):
    """The join of windows by time: every two rows, for every window that has both and is open."""

    def __init__(self, size: int, every: int, lateness: int, *, keyed: bool, match: Any) -> None:
        super().__init__(size, every, lateness)
        self.keyed, self.match = keyed, match
        self.sides: dict[str, list[Row]] = {"left": [], "right": []}

    def take(self, port: str, row: Row, found: Rows) -> None:
        mine = {w for w in self.windows(row) if self.closes(w) > self.now}
        if not mine:
            found[f"late-{port}"].append(row)
            return
        for other in self.sides["right" if port == "left" else "left"]:
            left, right = (row, other) if port == "left" else (other, row)
            if self.keyed and left["id"] != right["owner"]:
                continue
            if self.match is None or self.match(left, right):
                renamed = {"name_right": right["name"], "time_right": right["time"]}
                for window in mine.intersection(self.windows(other)):
                    pair = {**left, "owner": right["owner"], **renamed, "window": window}
                    found["out"].append(pair)
        self.sides[port].append(row)

    def watermark(self, time: int, found: Rows) -> None:
        self.now = max(self.now, time)


class SlidingRowsModel(Model):
    """Windows by rows: the last rows of each key, kept as such."""

    def __init__(self, size: int, *keys: str) -> None:
        self.keys = keys
        self.rows: dict[Any, deque[Row]] = defaultdict(lambda: deque(maxlen=size))

    def take(self, port: str, row: Row, found: Rows) -> None:
        rows = self.rows[tuple(row[key] for key in self.keys)]
        rows.append(row)
        found["out"].append({**pick(row, *self.keys, "time"), **aggregates_of(list(rows))})


class SlidingJoinModel(Model):
    """The join of windows by rows: each row meets the last rows of the other side."""

    def __init__(self, sizes: dict[str, int], *, keyed: bool, match: Any = None) -> None:
        self.keyed, self.match = keyed, match
        self.windows = {side: defaultdict(lambda n=n: deque(maxlen=n)) for side, n in sizes.items()}

    def take(self, port: str, row: Row, found: Rows) -> None:
        key = row["id" if port == "left" else "owner"] if self.keyed else 0
        for other in self.windows["right" if port == "left" else "left"][key]:
            left, right = (row, other) if port == "left" else (other, row)
            if self.match is None or self.match(left, right):
                renamed = {"name_right": right["name"], "time_right": right["time"]}
                found["out"].append({**left, "owner": right["owner"], **renamed})
        self.windows[port][key].append(row)
