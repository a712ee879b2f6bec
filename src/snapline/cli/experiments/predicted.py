"""`snapline simulate --figures`: one simulated run with the costs of a profile, and what it came to."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snapline.arguments import option
from snapline.cli.terminal.console import JSON_VERSION, escape, messages, print_json, results
from snapline.cli.terminal.options import default, local_file
from snapline.cli.terminal.summary import print_figures, summary
from snapline.errors import UsageError
from snapline.metrics.json_form import to_json
from snapline.protocols import DEFAULT
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.scale.predict import Prediction
    from snapline.scale.profile import Profile

FiguresOption = Annotated[
    bool,
    typer.Option(
        "--figures",
        metavar=" ",
        help="Simulate one run as [cyan]snapline run[/] would do it, with the costs of --profile, and "
        "print its figures. Nothing breaks unless --faults says so, and nobody judges the output.",
    ),
]
ProfileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=local_file,
        help="What work costs, as [cyan]snapline calibrate[/] has measured it. For --figures.",
    ),
]
PredictedRateOption = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="R|max",
        help="How many records per second a workload gets; [cyan]max[/] makes all of them due at once. For "
        "--figures." + default("2000"),
    ),
]
PredictedDurationOption = Annotated[
    str | None,
    typer.Option(
        "--duration",
        metavar="TIME",
        help="For how long input comes, in simulated time. For --figures." + default("20s"),
    ),
]
PredictedIntervalOption = Annotated[
    str | None,
    typer.Option(
        "--interval",
        metavar="TIME",
        help="How much time passes between two checkpoints. For --figures." + default("5s"),
    ),
]
CoresOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=10_000,
        metavar="N",
        help="How many cores all slots share. For --figures." + default("one for each slot"),
    ),
]
DiluteOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=10_000,
        metavar="K",
        help="Let each simulated record stand for K of them, at K times the costs, so that large runs take "
        "minutes and not hours; there is no latency then. For --figures." + default("1"),
    ),
]

ONLY_HERE = ("profile", "rate", "duration", "interval", "cores", "dilute")
"""The options that need --figures."""

NOT_HERE = {
    "seeds": "makes many runs, and --figures is of one: leave it out",
    "diagram": "draws a run that is watched, and --figures is not: leave one of the two out",
    "repeat": "brings its own run: leave --figures out",
    "jobs": "is for several runs at the same time, and --figures is of one: leave it out",
    "allow_vacuous": "is for a run that is judged, and --figures judges nothing: leave it out",
}
"""The options that do not go together with --figures, and why."""

AS_FOR_A_RUN = (
    *("protocol", "slots", "rate", "records", "duration", "interval", "faults", "seed", "size"),
    *("hot", "hot_moves", "settings", "options", "pools", "save", "inputs", "guarantee"),
)


def refuse_without_figures(given: Mapping[str, str]) -> None:
    """Raise UsageError if an option was given that says something only about figures."""
    for name in ONLY_HERE:
        if name in given:
            raise UsageError(f"{given[name]} is for a run with figures: add --figures")


def simulate_figures(asked: Mapping[str, Any], as_json: bool) -> int:
    """Simulate one run and print its figures; `asked` are the options by name, None if not given."""
    from snapline.rundir.spec import spec_from
    from snapline.scale.predict import predict
    from snapline.scale.profile import read_profile

    if asked.get("profile") is None:
        raise UsageError("--figures needs --profile FILE: 'snapline calibrate --to FILE' makes one")
    if asked.get("records") is not None and asked.get("rate") != "max":
        raise UsageError("--records with --figures is for --rate max: otherwise the rate says it")
    profile = read_profile(asked["profile"])
    described = {name: asked[name] for name in AS_FOR_A_RUN if asked.get(name) is not None}
    spec = spec_from(
        {
            "flow": asked.get("workload") or "q12",
            "protocol": DEFAULT,
            "slots": 2,
            **described,
        },
        option,
    )
    messages().print(escape(f"simulating {spec.flow} under {spec.protocol} ..."), soft_wrap=True)
    found = predict(spec, profile, cores=asked.get("cores"), dilution=asked.get("dilute") or 1)
    if as_json:
        print_json(_to_json(found, profile))
    else:
        _print(found, profile)
    return 0 if found.problem is None else 3


def _print(found: "Prediction", profile: "Profile") -> None:
    from snapline.scale.marks import marks

    out, spec = results(), found.spec
    slots = plural(spec.all_slots, "slot")
    cores = "a core each" if found.cores is None else plural(found.cores, "core")
    diluted = "" if found.dilution == 1 else f", diluted {found.dilution} times"
    out.print(
        f"[bold]simulated[/]: {escape(spec.flow)} under {escape(spec.protocol)}, {slots}, {cores}{diluted}"
        f": {found.simulated_s:,.1f} s in {found.took_s:,.1f} s",
        soft_wrap=True,
    )
    figures = found.figures
    lines = dict(summary(figures, figures.records_written or 0, protocol=spec.protocol))
    if found.dilution > 1:
        lines["latency"] = "no figure of a diluted run"
    print_figures(lines.items())
    for figure, (mark, why) in marks(found, profile).items():
        out.print(f"{figure}: [bold]{mark.value}[/] ({escape(why)})", soft_wrap=True)
    out.print("all other figures: [bold]not validated[/]")
    if found.problem is not None:
        out.print(f"[bold yellow]it ended early[/]: {escape(found.problem)}", soft_wrap=True)


def _to_json(found: "Prediction", profile: "Profile") -> dict[str, Any]:
    from snapline.scale.marks import Mark, marks

    metrics: Any = to_json(found.figures)
    known = marks(found, profile)
    return {
        "version": JSON_VERSION,
        "simulated": True,
        "run": found.spec.said(),
        "cores": found.cores,
        "dilution": found.dilution,
        "problem": found.problem,
        "simulated_s": found.simulated_s,
        "took_s": found.took_s,
        "metrics": metrics,
        "marks": {
            name: (known[name][0] if name in known else Mark.NOT_VALIDATED).value
            for name in metrics
            if name != "version"
        },
        "because": {name: why for name, (_, why) in known.items()},
    }
