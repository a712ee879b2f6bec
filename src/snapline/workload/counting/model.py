"""The input of the counting job: records with a key and nothing else."""

from collections.abc import Mapping

from snapline.batch import Column
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, Ints, draw, heated, next_of

KEYS = 12
"""The number of keys: so few that every key comes from every partition, even in a run of seconds."""

KEYS_FULL = 10_000


def records(params: Params) -> Generated:
    """The records to count."""
    return Generated("records", params, _fields, params.records)


def _fields(params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    field, below = "records.key", KEYS_FULL if params.full else KEYS
    keys = draw(params, field, partition, offsets, below)
    hottest = next_of(params, field, below)
    return {"key": heated(params, field, partition, offsets, params.records, keys, hottest)}
