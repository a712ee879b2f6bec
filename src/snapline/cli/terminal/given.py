"""Which options stand on the command line, so that one that would have no effect is refused."""

from collections.abc import Mapping

import typer

from snapline.errors import UsageError


def given_options(context: typer.Context) -> dict[str, str]:
    """The parameters that stand on the command line, even with their defaults, and how each is written."""
    written = {param.name: param.opts[0] for param in context.command.params}
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {
        name: written[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    }


def refuse_given(given: Mapping[str, str], idle: Mapping[str, str]) -> None:
    """Raise UsageError if an option was given that is idle, for the reason that stands beside it."""
    for name, why in idle.items():
        if name in given:
            raise UsageError(f"{given[name]} {why}")
