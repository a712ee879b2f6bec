"""Finds the last line of a run that is not over, from its ledger, and what that line holds.

The verdict is on what is public, so all that the line has put out must be. A run that stopped with a last
line has published everything. A driver that was killed may have decided on a line and not have published
its output yet, and with `publish_lag` it has held output back.
"""

from snapline.core.messages import initial_meta
from snapline.engine.coordinator.ledger import newest_decision
from snapline.errors import RunDamaged, StorageError, UsageError
from snapline.judge.prefix.cut import LineCut, NoCut, cut_at
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.rundir.past import read_past
from snapline.rundir.presence import refuse_if_driven
from snapline.rundir.program import Program, build_job
from snapline.rundir.spec import Spec


def line_of(directory: RunDirectory) -> int | None:
    """The number of the last decision of a run that is not over; None if there is none.

    Raises UsageError if a driver goes on with it.
    """
    refuse_if_driven(directory)
    try:
        last = newest_decision(directory.files, directory.identity)
    except StorageError:
        return None
    return None if last is None or last.over else last.number


def cut_of(directory: RunDirectory, spec: Spec, program: Program, number: int) -> LineCut:
    """What the last line of a run holds, if that is still the one of this decision.

    Raises NoCut, and UsageError if the run has gone on, or was started with another dataflow or input.
    """
    if PROTOCOLS[spec.protocol].publishes_at_once:
        raise NoCut(f"{spec.protocol} has no lines: nobody knows which records had been read")
    job = build_job(spec, program)
    try:
        past = read_past(directory, job)
        public = directory.outlet.last_published()
    except (RunDamaged, StorageError) as error:
        raise NoCut(str(error)) from error
    if past is None or past.number != number:
        raise UsageError(f"{directory.name} was resumed while it was judged: wait until it stops")
    if past.held or public < past.published:
        raise NoCut(
            "not all that came out by its last line is public yet: a resume publishes the rest"
        )
    line = {t: chain[-1] if chain else initial_meta(t) for t, chain in past.chains.items()}
    return cut_at(job.deployment, line, job.settings.watermark_ms)
