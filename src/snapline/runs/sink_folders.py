"""The directories into which sinks also write Parquet files: looked at before a run, claimed, and tidied.

A run says once, in `run.json`, where they are; a resume goes on there, whatever its flow says by then.
"""

from pathlib import Path

from snapline.core.protocol import CheckpointProtocol
from snapline.dataflow.graph import Dataflow
from snapline.errors import UsageError
from snapline.rundir.directory import RunDirectory
from snapline.rundir.place import check_writable
from snapline.storage.parquet.sink_files import (
    check_folder,
    claim_folder,
    release_folder,
    remove_drafts,
)


def folders_of(flow: Dataflow) -> dict[str, Path]:
    """The directories that the sinks of a flow name, by sink."""
    nodes = flow.graph.nodes
    return {n: Path(node.folder).absolute() for n, node in nodes.items() if node.folder is not None}


def check_new(flow: Dataflow, protocol: CheckpointProtocol) -> None:
    """Raise UsageError if a new run cannot write what its sinks ask for; changes nothing."""
    folders = folders_of(flow)
    for sink, folder in folders.items():
        if protocol.publishes_at_once:
            raise UsageError(
                f"the sink '{sink}' writes to {folder} what lines publish, and {protocol.name} commits no "
                "lines: leave out to=, or choose another protocol"
            )
        shared = [other for other, place in folders.items() if place.resolve() == folder.resolve()]
        if len(shared) > 1:
            raise UsageError(
                f"{' and '.join(shared)} write to {folder}: give each its own directory"
            )
        check_writable(folder, f"output of the sink '{sink}' cannot be written to {folder}", "to=")
        check_folder(folder, None)


def refuse_fork(flow: Dataflow) -> None:
    """Raise UsageError if a sink writes Parquet files: a fork would begin without those of its origin."""
    for sink, folder in folders_of(flow).items():
        raise UsageError(
            f"this run cannot be forked: its sink '{sink}' writes to {folder}, and the files there "
            "belong to the run"
        )


def claim(directory: RunDirectory) -> None:
    """Make the directories those of a run that was just made. Raises UsageError."""
    for folder in directory.folders.values():
        claim_folder(folder, directory.identity)


def release(directory: RunDirectory) -> None:
    """Leave the directories as they were, because the run that has claimed them did not begin."""
    for folder in directory.folders.values():
        release_folder(folder)


def check_claimed(directory: RunDirectory) -> None:
    """Raise UsageError if a run that is to go on does not find its directories as it left them."""
    for folder in directory.folders.values():
        check_folder(folder, directory.identity)


def tidy(directory: RunDirectory) -> None:
    """Remove what was written and never published, once a run has come to its end."""
    for folder in directory.folders.values():
        remove_drafts(folder)
