"""From a spec and its program to the job that the engine runs."""

from snapline.core.protocol import Options
from snapline.dataflow.graph import deploy
from snapline.engine.job import Job, Settings
from snapline.errors import UsageError
from snapline.protocols import PROTOCOLS, refusal
from snapline.rundir.inputs import with_inputs
from snapline.rundir.program import Program
from snapline.rundir.spec import Spec


def build_job(spec: Spec, program: Program) -> Job:
    """The job of a spec; UsageError if it cannot be."""
    for name in ("slots", "rate", "duration_ms", "interval_ms", "records"):
        if getattr(spec, name) != "max" and getattr(spec, name) < 1:
            raise UsageError(f"{name} must be at least 1, not {getattr(spec, name)}")
    if spec.protocol not in PROTOCOLS:
        raise UsageError(f"there is no protocol {spec.protocol!r}: see 'snapline list protocols'")
    protocol = PROTOCOLS[spec.protocol]
    levels = {level.value: level for level in protocol.guarantees}
    if spec.guarantee is not None and spec.guarantee not in levels:
        able = ", ".join(levels)
        raise UsageError(f"{spec.protocol} cannot promise {spec.guarantee}: it can promise {able}")
    guarantee = levels[spec.guarantee] if spec.guarantee else protocol.guarantees[0]
    deployment = with_inputs(deploy(program.flow, spec.slots, lean=True))
    if reason := refusal(protocol, deployment.topology):
        raise UsageError(reason)
    options = Options(interval_ms=spec.interval_ms)
    settings = Settings(publish_lag=spec.publish_lag)
    return Job(program.flow.name, deployment, protocol, options, guarantee, settings, spec.seed)
