"""The identities of records: by them it can be told later which records these were."""

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch
from snapline.dataflow.state.hashing import hash_columns

ID = "id"


def identities_of(batch: Batch) -> tuple[bool, npt.NDArray[np.int64]]:
    """The identity of each record, and whether it is the number in its column `id`, else a hash of the row.

    Columns are hashed in the order of their names, so equal rows have equal hashes, however they came.
    """
    ids = batch.columns.get(ID)
    if isinstance(ids, np.ndarray) and ids.dtype == np.int64:
        return True, ids
    if not batch.columns:
        return False, np.zeros(len(batch), np.int64)
    names = sorted(batch.columns)
    return False, hash_columns([batch[name] for name in names]).view(np.int64)
