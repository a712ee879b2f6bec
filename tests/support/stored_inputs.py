"""Inputs as files, written in one go."""

from collections.abc import Sequence
from pathlib import Path

from snapline.batch import Batch
from snapline.storage.files.ingress import describe_ingress, write_segment
from snapline.storage.files.places import make_directory


def write_ingress(directory: Path, partitions: Sequence[Sequence[Batch]]) -> None:
    """Write an input: for each partition, its batches in order."""
    make_directory(directory)
    segments = [[write_segment(directory, n, 0, batches)] for n, batches in enumerate(partitions)]
    describe_ingress(directory, partitions[0][0].schema, segments)
