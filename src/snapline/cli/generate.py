"""`snapline generate`: store the input of a workload, made by a Spark job."""

import os
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from snapline.arguments import whole
from snapline.cli.terminal.console import escape, messages, print_json, results
from snapline.cli.terminal.options import SEED_MAX, default
from snapline.durations import millis
from snapline.errors import UsageError
from snapline.wording import plural
from snapline.workload import settings_of
from snapline.workload.common.base import Params, size_of
from snapline.workload.common.generated import records_per_partition
from snapline.workload.common.settings import split_settings

PROGRESS_EVERY_S = 2.0
HELP = """Make the input of a workload with a Spark job, and store it for many runs.

A run that reads stored input need not make it, and so can be faster; and several runs, or other systems, \
can read the very same records. The words of this page are explained in docs/glossary.md."""

EXAMPLES = """[bold]Examples[/bold]

Store a minute of bids for two slots, in the form that runs read fastest, and run with them:
[cyan]snapline generate q12 --to inputs/bids --rate 100000 --duration 60s --slots 2[/cyan]
[cyan]snapline run q12 --slots 2 --input inputs/bids[/cyan]

Let a fifth of the bids come from one bidder:
[cyan]snapline generate q12 --to inputs/hot --rate 100000 --duration 60s --slots 2 --hot 20[/cyan]

Store persons and auctions as Parquet, which others can read, too:
[cyan]snapline generate q3 --to file:///data/q3 --format parquet[/cyan]"""

WorkloadArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="The workload whose input is made, such as [cyan]q12[/]; [cyan]snapline list workloads[/] "
        "shows them.",
    ),
]
ToOption = Annotated[
    str,
    typer.Option(
        metavar="DIR|file:///DIR",
        help="The directory into which the input is written. It must be new.",
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="log|parquet",
        help="The form of the files: [cyan]log[/], which runs read fastest, or [cyan]parquet[/], which "
        "other programs read, too.",
    ),
]
RateOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=1_000_000_000,
        metavar="R",
        help="How many records per second each source gets.",
    ),
]
DurationOption = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="For how long input comes, such as [cyan]500ms[/], [cyan]20s[/] or [cyan]2m[/].",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        min=0,
        max=SEED_MAX,
        metavar="K",
        help="The seed from which the records are drawn; the same seed gives the same records.",
    ),
]
PartitionsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1_000,
        metavar="N",
        help="How many slots the runs will have that read this input; each source gets as many partitions."
        + default("one for each core"),
    ),
]


def params_of(
    workload: str,
    rate: int,
    duration: str,
    seed: int,
    slots: int | None,
    size: str,
    hot: int,
    hot_moves: str,
    settings: Sequence[str],
) -> Params:
    """The parameters of a generated input, from the options. Raises UsageError."""
    partitions = slots or len(os.sched_getaffinity(0))
    duration_ms = millis(duration, "--duration", least_ms=1)
    return Params(
        seed,
        partitions,
        records_per_partition(rate, partitions, duration_ms),
        duration_ms,
        full=size_of(size, "--size") == "full",
        hot=whole(0, 100)(hot, "--hot"),
        hot_ms=millis(hot_moves, "--hot-moves"),
        settings=settings_of(workload, split_settings(settings)),
    )


def generate_input(workload: str, to: str, form: str, params: Params, as_json: bool) -> int:
    """Make and store the input of a workload, print what was written, and return the exit code."""
    from snapline.rundir.stored_input import FORMATS, sources_of
    from snapline.spark import generate

    known = next((name for name in FORMATS if name == form), None)
    if known is None:
        raise UsageError(f"--format takes {' or '.join(FORMATS)}, not {form!r}")
    sources_of(workload, params)  # raises UsageError for bad input before Spark is started
    target = generate.target_path(to)
    generate.check_target(target)
    messages().print("starting Spark ...")
    told = _Progress()
    description = generate.generate(workload, params, target, format=known, on_progress=told.see)
    if as_json:
        print_json({"directory": str(target), **description})
        return 0
    for name, size in description["sources"].items():
        records, partitions = plural(size["records"], "record"), size["partitions"]
        where = f"in {plural(partitions, 'partition')}, {size['bytes'] / 1e6:,.1f} MB"
        results().print(f"{escape(name)}: {records} {where}")
    results().print(f"run them: snapline run {workload} --input {escape(str(target))}")
    return 0


class _Progress:
    """Prints from time to time how much is written."""

    def __init__(self) -> None:
        self._next_s = time.monotonic() + PROGRESS_EVERY_S

    def see(self, done: int, pieces: int) -> None:
        if time.monotonic() > self._next_s:
            self._next_s = time.monotonic() + PROGRESS_EVERY_S
            messages().print(f"{done:,} of {plural(pieces, 'piece')} written")
