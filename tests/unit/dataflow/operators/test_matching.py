"""All pairs of records with the rows of a window: columns of all kinds, made only when asked for."""

import numpy as np

from snapline.batch import Batch, Words
from snapline.dataflow.sliding.matching import crossed, places

RECORDS = Batch(
    {"id": np.array([7, 8]), "colour": Words(np.array([1, 0], np.int32), ("red", "blue"))}
)
WINDOW = Batch.of(owner=[1, 2, 3], name=["ada", "", "bob"])


def test_every_record_meets_all_rows_of_the_window():
    mine, theirs = crossed(RECORDS, WINDOW)
    assert mine.to_pydict() == {
        "id": [7, 7, 7, 8, 8, 8],
        "colour": ["blue", "blue", "blue", "red", "red", "red"],
    }
    assert theirs.to_pydict() == {
        "owner": [1, 2, 3, 1, 2, 3],
        "name": ["ada", "", "bob", "ada", "", "bob"],
    }


def test_the_pairs_that_were_chosen_are_found_in_both():
    mine, theirs = crossed(RECORDS, WINDOW)
    records, rows = places((mine["id"] == 8) & (theirs["owner"] != 2), WINDOW)
    assert (records.tolist(), rows.tolist()) == ([1, 1], [0, 2])


def test_a_column_that_nobody_asks_for_is_not_made():
    class Untouched:
        """Fails as soon as somebody takes rows of it."""

        def __len__(self):
            return 3

    mine, theirs = crossed(RECORDS, Batch({"owner": WINDOW["owner"], "text": Untouched()}))
    assert (mine["id"] > theirs["owner"]).all()
    assert list(theirs.columns) == ["owner", "text"]
