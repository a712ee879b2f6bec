"""The input of the counting job: records with a key and nothing else."""

from collections.abc import Mapping

from snapline.batch import Column
from snapline.workload.base import Params
from snapline.workload.generated import Generated, Ints, draw

KEYS = 12
"""Few enough that every key comes from every partition, even in a run of seconds."""


def records(params: Params) -> Generated:
    """The records to count."""
    return Generated("records", params, _fields, params.records)


def _fields(params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    return {"key": draw(params, "records.key", partition, offsets, KEYS)}
