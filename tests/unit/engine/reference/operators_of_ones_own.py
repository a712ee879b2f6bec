"""A running sum as people write it, right and wrong in every way, and dataflows around it."""

from typing import ClassVar

import numpy as np

import snapline as sl
from snapline.batch import Batch
from snapline.dataflow.operators.operator import Capture, Operator


class Sum(Operator):
    """The sum of each key so far, one row for each record: right."""

    def __init__(self):
        self.sums = {}

    def process(self, port, batch):
        totals = []
        for key, value in zip(batch["key"].tolist(), batch["value"].tolist(), strict=True):
            self.sums[key] = self.sums.get(key, 0) + value
            totals.append(self.sums[key])
        return (("out", Batch.of(key=batch["key"], time=batch["time"], total=totals)),)

    def capture(self, *, full):
        return Capture(True, {"sums": columns(self.sums)})

    def restore(self, captures):
        self.sums = pairs(captures[-1])


def columns(sums):
    keys, values = np.array(list(sums), np.int64), np.array(list(sums.values()), np.int64)
    return Batch({"key": keys, "sum": values})


def pairs(capture):
    part = capture.parts["sums"]
    return dict(zip(part["key"].tolist(), part["sum"].tolist(), strict=True))


class Deltas(Sum):
    """Captures only the sums that changed: right, too."""

    def __init__(self):
        super().__init__()
        self.changed = set()

    def process(self, port, batch):
        self.changed.update(batch["key"].tolist())
        return super().process(port, batch)

    def capture(self, *, full):
        kept = self.sums if full else {key: self.sums[key] for key in sorted(self.changed)}
        self.changed = set()
        return Capture(full, {"sums": columns(kept)})

    def restore(self, captures):
        for capture in captures:
            self.sums |= pairs(capture)


class OtherOrder(Sum):
    """Goes on in another order of its keys after a restore, and puts all of them out: right, too."""

    def process(self, port, batch):
        super().process(port, batch)
        return (("out", Batch.of(key=list(self.sums), sum=list(self.sums.values()))),)

    def restore(self, captures):
        self.sums = dict(reversed(pairs(captures[-1]).items()))


class NoCapture(Sum):
    """It was never thought of."""

    capture, restore = Operator.capture, Operator.restore


class EmptyCapture(Sum):
    """The capture of the last column is not there."""

    def capture(self, *, full):
        return Capture(True, {"sums": columns({})})


class NoRestore(Sum):
    """What is captured is not used."""

    def restore(self, captures):
        pass


class HotKeyForgotten(Sum):
    """One key of many is left out."""

    def capture(self, *, full):
        return Capture(True, {"sums": columns({k: v for k, v in self.sums.items() if k != 1})})


class SmallNumbers(Sum):
    """The columns are too narrow for the sums."""

    def capture(self, *, full):
        kept = columns(self.sums)
        return Capture(True, {"sums": kept.with_columns(sum=kept["sum"].astype(np.int16))})


class LastDeltaOnly(Deltas):
    """A restore takes the last capture for all there is."""

    def restore(self, captures):
        self.sums = pairs(captures[-1])


class FullOnly(Deltas):
    """A restore takes the full capture for all there is."""

    def restore(self, captures):
        self.sums = pairs(captures[0])


class ChangesNotReset(Deltas):
    """A delta, where all was asked for."""

    def capture(self, *, full):
        return Capture(False, super().capture(full=full).parts)


class CaptureEmpties(Sum):
    """The capture takes away what it captures."""

    def capture(self, *, full):
        capture = super().capture(full=full)
        self.sums = {}
        return capture


class Array(Operator):
    """Sums in an array: captured as it is, so that it changes afterwards."""

    def __init__(self):
        self.sums = np.zeros(50, np.int64)

    def process(self, port, batch):
        for key, value in zip(batch["key"].tolist(), batch["value"].tolist(), strict=True):
            self.sums[key] += value
        return (("out", Batch.of(key=batch["key"], seen=self.sums[batch["key"]])),)

    def capture(self, *, full):
        return Capture(True, {"sums": Batch({"sum": self.sums})})

    def restore(self, captures):
        self.sums = captures[-1].parts["sums"]["sum"].copy()


class ReadOnlyArray(Array):
    """The capture is a copy, but the restored columns are written to."""

    def capture(self, *, full):
        return Capture(True, {"sums": Batch({"sum": self.sums.copy()})})

    def restore(self, captures):
        self.sums = captures[-1].parts["sums"]["sum"]


class RaisesInCapture(Sum):
    """As soon as there are some keys."""

    def capture(self, *, full):
        if len(self.sums) > 2:
            raise ValueError("too many keys")
        return super().capture(full=full)


class RaisesInRestore(Sum):
    """It looks for a part that is not there."""

    def restore(self, captures):
        self.sums = captures[-1].parts["totals"]


class LeavesInRestore(Sum):
    """It ends the process, as if all were well."""

    def restore(self, captures):
        raise SystemExit(0)


class SpeechlessInCapture(Sum):
    """It raises what cannot be put into words."""

    def capture(self, *, full):
        raise Speechless


class Speechless(BaseException):
    """Fails in saying what it is."""

    def __str__(self):
        raise SystemExit(0)


class Objects(Sum):
    """Python objects are no columns."""

    def capture(self, *, full):
        return Capture(True, {"sums": Batch({"sums": np.array([self.sums], object)})})


class Clocked(Sum):
    """What comes out at the watermark is captured; the watermark is not."""

    uses_time = True

    def __init__(self):
        super().__init__()
        self.clock = 0

    def on_watermark(self, time):
        self.clock += 1
        return (("out", Batch.of(key=[-1], time=[min(time, 1 << 40)], total=[self.clock])),)


class LateForgotten(Sum):
    """Forgets everything if it is captured between two watermarks, and nothing before or after."""

    uses_time = True
    span: ClassVar[tuple[int, int]] = (0, 0)

    def __init__(self):
        super().__init__()
        self.time = 0

    def on_watermark(self, time):
        self.time = time
        return ()

    def capture(self, *, full):
        first, last = self.span
        return Capture(True, {"sums": columns({} if first < self.time <= last else self.sums)})


class Rarely(Sum):
    """Puts nothing out at a single moment of this process, as by a clock, in whichever instance that is."""

    left: ClassVar[int] = 0

    def process(self, port, batch):
        Rarely.left -= 1
        return () if Rarely.left == 0 else super().process(port, batch)


class Late(Operator):
    """Two inputs: what comes of one of them is remembered, and forgotten."""

    def __init__(self):
        self.known = set()

    def process(self, port, batch):
        if port == "known":
            self.known.update(batch["key"].tolist())
            return ()
        known = np.array([key in self.known for key in batch["key"].tolist()])
        return (("out", batch.with_columns(known=known)),)


class InTheClass(Sum):
    """Its state survives every restore in this process, and none in another one."""

    shared: ClassVar[dict[int, int]] = {}

    def __init__(self):
        self.sums = InTheClass.shared


def numbers(rate=400):
    """Keys and values of which one key is hot."""
    return sl.generated(
        lambda n: {"key": np.where(n % 3 == 0, 1, n % 47), "value": n * n % 101 + 1000}, rate=rate
    )


def summed(operator, *, seconds=2, slots=2):
    """The flow of the documentation: an operator of one's own behind a filter."""
    flow = sl.Dataflow("sums")
    filtered = flow.source(numbers()).filter(lambda batch: batch["value"] % 5 > 0)
    filtered.key_by("key").apply(operator, name="totals").sink("out")
    return flow.bind(slots, seconds * 1_000)
