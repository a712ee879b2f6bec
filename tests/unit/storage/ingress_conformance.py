"""What every ingress promises, as one function, because ingresses are made in many places."""

from collections.abc import Sequence

from snapline.batch import Batch, concat
from snapline.storage.api import Ingress


def check_ingress(ingress: Ingress, records_max: int = 200) -> None:
    """Check purity, due times and watermarks over the first records of every partition."""
    assert ingress.partitions >= 1
    assert ingress.schema["time"] == "int64"
    for partition in range(ingress.partitions):
        end = ingress.end(partition)
        assert end is None or end >= 0
        count = records_max if end is None else min(end, records_max)
        _check_reads(ingress, partition, count)
        _check_due(ingress, partition, count)
        _check_watermark(ingress, partition, count)


def _check_reads(ingress: Ingress, partition: int, count: int) -> None:
    whole = ingress.read(partition, 0, count)
    assert len(whole) == count
    assert whole.schema == dict(ingress.schema)
    assert ingress.read(partition, 0, count) == whole, "the second read differs"
    for size in (1, 2, 7, count + 1):
        cuts = [(at, min(at + size, count)) for at in range(0, count, size)]
        pieces = {cut: ingress.read(partition, *cut) for cut in reversed(cuts)}
        assert [len(pieces[cut]) for cut in cuts] == [stop - at for at, stop in cuts]
        assert _joined([pieces[cut] for cut in cuts], whole) == whole, f"cut by {size}"
    empty = ingress.read(partition, count, count)
    assert (len(empty), empty.schema) == (0, dict(ingress.schema))


def _joined(pieces: Sequence[Batch], whole: Batch) -> Batch:
    return concat(pieces) if pieces else whole


def _check_due(ingress: Ingress, partition: int, count: int) -> None:
    due = [ingress.due_ms(partition, offset) for offset in range(count)]
    assert due == sorted(due), "due times fall"
    for now in sorted({0, *due, *(ms - 1 for ms in due), *(ms + 1 for ms in due)}):
        through = ingress.due_through(partition, now)
        assert through >= sum(ms <= now for ms in due)
        if through < count:
            assert due[through] > now, f"record {through} is due at {now} and was left out"
        if 0 < through <= count:
            assert due[through - 1] <= now, f"record {through - 1} is not due at {now}"


def _check_watermark(ingress: Ingress, partition: int, count: int) -> None:
    times = ingress.read(partition, 0, count)["time"].tolist()
    marks = [ingress.watermark(partition, offset) for offset in range(count + 1)]
    assert marks == sorted(marks), "the watermark falls"
    for offset in range(count):
        assert min(times[offset:]) >= marks[offset], f"a record after {offset} is late"
