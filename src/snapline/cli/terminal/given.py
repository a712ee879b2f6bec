"""Which options stand on the command line, so that one that would have no effect is refused."""

from collections.abc import Mapping

import typer

from snapline.arguments import option
from snapline.errors import UsageError
from snapline.rundir.spec import OWN, refuse_idle

#: options that only Snapline's own engine has, by parameter, and why a system under test refuses each
OURS = {
    "protocol": "it brings its own way to survive failures",
    "interval": "it decides itself when to checkpoint",
    "spares": "it has no slots of ours",
    "source": "its input is made as it runs",
    "reference": "it has an oracle",
    "publish_lag": "it commits by itself",
    "retain": "it keeps its output itself",
    "warm_up": "it is not measured second by second",
    "options": "it has no engine or protocol of ours",
    "pools": "it has no slots of ours",
    "save": "it decides itself what to save",
    "inputs": "it has no operators of ours",
    "full_journal": "it has no protocol of ours to write about",
    "listen": "it runs on this machine",
    "live": "it is not measured second by second",
    "report": "'snapline report last' makes its page when it is over",
    "shared": "it runs on this machine",
    "heartbeat": "it has no slots of ours",
    "silence": "it has no slots of ours",
    "restart_failures": "it starts its own processes again",
    "restart_window": "it starts its own processes again",
    "resume": "a killed system is started again by the run itself",
    "fork": "it has no lines of ours",
    "line": "it has no lines of ours",
    "chaos": "name the faults with --faults",
    "ui": "it starts its own Spark, if it needs one",
}


def given_options(context: typer.Context) -> dict[str, str]:
    """The parameters that stand on the command line, even with their defaults, and how each is written."""
    written = {param.name: param.opts[0] for param in context.command.params}
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {
        name: written[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    }


def refuse_for_own_sources(context: typer.Context, flow: str) -> None:
    """Raise UsageError if an option was given that only workloads heed, and the flow is none of them."""
    given = [name for name in given_options(context) if name in ("rate", "size")]
    refuse_idle({"flow": flow, **{name: context.params[name] for name in given}}, option)


def refuse_given(given: Mapping[str, str], idle: Mapping[str, str]) -> None:
    """Raise UsageError if an option was given that is idle, for the reason that stands beside it."""
    for name, why in idle.items():
        if name in given:
            raise UsageError(f"{given[name]} {why}")


def refuse_ours(system: str, given: Mapping[str, str]) -> None:
    """Raise UsageError if an option was given that means nothing to a system under test."""
    if system != OWN:
        ours = f"is for Snapline's own engine, not for {system}"
        refuse_given(given, {name: f"{ours}: {why}" for name, why in OURS.items()})
