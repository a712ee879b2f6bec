"""Opens the input that `snapline generate` has stored: its description, and its sources by name."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from snapline.arguments import nearest
from snapline.errors import UsageError
from snapline.storage.api import Ingress
from snapline.storage.files.ingress import FileIngress
from snapline.storage.files.storage import FileStorage
from snapline.storage.parquet.ingress import ParquetIngress
from snapline.wording import plural
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, StoredAsGenerated

VERSION = 2
DESCRIPTION = "input.json"
Format: TypeAlias = Literal["log", "parquet"]
FORMATS: tuple[Format, ...] = ("log", "parquet")
_OPENED: Mapping[str, Callable[[Path], Ingress]] = {"log": FileIngress, "parquet": ParquetIngress}


class StoredInput(NamedTuple):
    """An input that was stored: its workload, its size, and its sources by name."""

    workload: str
    params: Params
    sources: Mapping[str, Ingress]


def sources_of(workload: str, params: Params) -> dict[str, Ingress]:
    """The sources of a workload by name."""
    if workload not in WORKLOADS:
        raise UsageError(f"there is no workload {workload!r}; {nearest(workload, WORKLOADS)}")
    nodes = WORKLOADS[workload].build(params).graph.nodes.values()
    return {node.name: ingress for node in nodes if (ingress := node.bound) is not None}


def stored_input(directory: Path) -> StoredInput:
    """Open an input that `generate` has stored; reads no records. Raises UsageError."""
    file = directory / DESCRIPTION
    if not file.is_file():
        raise UsageError(f"{directory} holds no input: 'snapline generate' makes one")
    try:
        description = json.loads(file.read_text())
        version, format = description["version"], description["format"]
        if version != VERSION or format not in FORMATS:
            raise UsageError(f"{directory} was written by another version of Snapline")
        workload, params = description["workload"], Params(**description["params"])
        sizes = {name: source["records"] for name, source in description["sources"].items()}
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is damaged: {error!r}") from error
    storage = FileStorage(directory.resolve(), _OPENED[format])
    sources = {name: storage.ingress(name) for name in sizes}
    for name, source in sources.items():
        if sum(source.end(partition) or 0 for partition in range(source.partitions)) != sizes[name]:
            raise UsageError(
                f"{directory / name} has not the {plural(sizes[name], 'record')} it should"
            )
    made = sources_of(workload, params)
    return StoredInput(workload, params, {n: _as_made(s, made.get(n)) for n, s in sources.items()})


def _as_made(stored: Ingress, made: Ingress | None) -> Ingress:
    """Stored records, with the times and watermarks of their generator where records may lag."""
    if isinstance(made, Generated) and made.bound_ms is not None:
        return StoredAsGenerated(stored, made)
    return stored
