"""Predicted beside measured: bytes, capacity and restart of q12 and q3, on more slots than were calibrated.

    python -m benchmarks.simulator.predictions
    python -m benchmarks.simulator.predictions --profile profile.json --slots 4 --workloads q3 --turns 2

Costs are fitted to runs of q12 on 1 and 2 slots, or taken from `--profile`. Then every cell is run for
real, as plain processes of this machine, and simulated on as many cores: at a rate, at full speed, and with
a slot killed. *Bytes* are those of messages, headers, markers, logs and snapshots per record; *capacity* is
the rate at full speed over that of `none`, which runs just before; *restart* goes from the loss of a slot
to all tasks ready. `scale/checks.py` says how large messages are, and `scale/profile.py` has the bars. A
cell beyond its bar is a result, not an error.
"""

import argparse
from pathlib import Path

from benchmarks.common.pages import Session, call, names, numbers, parser_of, table
from snapline.scale.calibrate import calibrate
from snapline.scale.checks import Comparing, compare
from snapline.scale.profile import (
    BARS,
    Checked,
    PredictionCheck,
    Profile,
    read_profile,
    write_profile,
)

HOW = (
    "Slots are plain processes; simulated slots share as many cores. *error*: predicted over measured,",
    "less one. *Fit*: how far the costs explain the CPU time of the runs from which they were fitted.",
)


def row(check: PredictionCheck) -> list[str]:
    """One prediction beside what was measured."""
    return [
        *(check.what.value, check.workload, f"`{check.protocol}`", str(check.slots)),
        "any" if check.batch is None else str(check.batch),
        *(f"{check.predicted:,.4g}", f"{check.measured:,.4g}", f"{check.error:+.1%}"),
        f"{BARS[check.what]:.0%}",
        "yes" if check.holds else "**no**",
    ]


def kept(checks: list[PredictionCheck]) -> list[list[str]]:
    """How many predictions of each kind were within their bar."""
    rows = []
    for what in Checked:
        same = [check for check in checks if check.what is what]
        if same:
            worst = max(same, key=lambda check: abs(check.error))
            within = sum(check.holds for check in same)
            rows.append([what.value, f"{within} of {len(same)}", f"{worst.error:+.1%}"])
    return rows


def profile_of(asked: argparse.Namespace, session: Session) -> Profile:
    """The profile that was given, or one that is measured now."""
    if asked.profile is not None:
        return read_profile(asked.profile)
    return calibrate(tell=lambda what, step, of: session.say(f"{step} of {of}: {what}"))


def main() -> None:
    parser = parser_of(__doc__, "predictions.md")
    parser.add_argument("--profile", type=Path, help="costs that are there already")
    parser.add_argument("--workloads", type=names, default=["q12", "q3"])
    parser.add_argument("--protocols", type=names, default=["aligned", "uncoordinated", "hmnr"])
    parser.add_argument("--slots", type=numbers, default=[4, 10])
    parser.add_argument("--rate", type=int, default=20_000, help="records a second, all together")
    parser.add_argument("--seconds", type=int, default=8, help="of input, for bytes and restart")
    parser.add_argument(
        "--turns", type=int, default=1, help="of real runs, for capacity and restart"
    )
    parser.add_argument("--keep", type=Path, help="write the profile with these checks here")
    asked = parser.parse_args()
    session = Session()
    profile = profile_of(asked, session)
    wanted = Comparing(
        asked.workloads,
        asked.protocols,
        asked.slots,
        asked.rate,
        1000 * asked.seconds,
        turns=asked.turns,
    )
    checks: list[PredictionCheck] = []
    try:
        for check in compare(wanted, profile, session.cores, session.say):
            checks.append(check)
            session.say(f"  {check}")
    finally:  # also of what was compared until somebody ended it
        if asked.keep is not None:
            asked.keep.write_text(write_profile(profile.with_checks(tuple(checks))))
        write(session, asked, profile, checks)


def write(
    session: Session, asked: argparse.Namespace, profile: Profile, checks: list[PredictionCheck]
) -> None:
    """Write the page."""
    fitted = profile.fit
    how = [
        f"Fitted on {', '.join(fitted.workloads)} with {', '.join(map(str, fitted.slots))} slots; fit: "
        f"{len(fitted.residuals)} runs, {fitted.worst:.0%} at worst. {asked.rate:,} records/s.",
        *HOW,
    ]
    head = [
        "what",
        "workload",
        "protocol",
        "slots",
        "records a message",
        "predicted",
        "measured",
        "error",
        "bar",
        "within",
    ]
    tables = [
        table(["what", "within the bar", "worst error"], kept(checks)),
        table(head, [row(check) for check in checks]),
    ]
    session.write(asked.to, "Predicted beside measured", how, tables)


if __name__ == "__main__":
    call(main)
