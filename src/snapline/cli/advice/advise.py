"""`snapline advise`: what to choose for a dataflow, from simulated runs of it. A group of commands."""

import typer

from snapline.cli.advice import protect, protocol

group = typer.Typer(
    help="Say what to choose for a dataflow, from what simulated runs of it come to.",
    epilog="""[bold]Examples[/bold]

Find the protocol and the interval that recover within five seconds:
[cyan]snapline advise protocol q12 --rto 5s[/cyan]

Find out which operators to save, if captures may take 3 % of the time:
[cyan]snapline advise protect q6 --budget 3%[/cyan]""",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@group.callback()
def advise_callback() -> None:
    """`snapline advise`."""


group.command("protocol", help=protocol.HELP, epilog=protocol.EXAMPLES)(protocol.protocol_command)
group.command("protect", help=protect.HELP, epilog=protect.EXAMPLES)(protect.protect_command)
