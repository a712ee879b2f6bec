"""Streams written by hand, as the query of a run writes them: for tests that need no Spark."""

from pathlib import Path

import numpy as np

from snapline.batch import Batch
from snapline.storage.files.ingress import write_segment
from snapline.storage.streams.chain import StreamChain, describe_stream
from snapline.storage.streams.manifests import Manifests

SCHEMA = {"n": "int64", "time": "int64"}
QUERY = "the query"


def made_stream(place: Path, partitions=2, disorder_ms=0, idle_ms=5_000) -> StreamChain:
    """A new stream without records."""
    describe_stream(
        place,
        SCHEMA,
        time="time",
        disorder_ms=disorder_ms,
        idle_ms=idle_ms,
        partitions=partitions,
    )
    return StreamChain(place)


def rows(*times: int) -> Batch:
    """Rows with these times; their numbers are the times, too."""
    return Batch({"n": np.array(times, np.int64), "time": np.array(times, np.int64)})


def own_file(place: Path, number: int) -> Path:
    """The file of one manifest that is in no bundle."""
    return Manifests(place).own.path(str(number))


def written(chain: StreamChain, batch: int, *partitions, query=QUERY):
    """An attempt at a micro-batch: its folder and segments, which no manifest names yet."""
    folder = chain.begin(batch, query)
    if folder is None:
        return None
    segments = {
        number: write_segment(folder, number, 1, [rows(*times)])
        for number, times in enumerate(partitions)
        if times
    }
    return folder, segments


def add(chain: StreamChain, *partitions) -> None:
    """Add the next micro-batch: the times of the rows of each partition."""
    folder, segments = written(chain, chain.length, *partitions)
    assert chain.add(chain.length, QUERY, folder, segments)
