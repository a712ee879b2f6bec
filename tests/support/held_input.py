"""Input that goes on, slowly, until something has happened: so a test waits for a moment of its run.

The input of a run is due by the clock, so on a slow machine a run may be over before the moment for which
a test waits. The sources of a job that is *held* are as quick as ever for a second. The rest of their input
then lasts for more than a minute, as long as a file is there; without it, all is due that would have been.
"""

import sys
from dataclasses import replace
from pathlib import Path

from pyspark import cloudpickle

from snapline.engine.job import Job
from snapline.ids import Millis

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the slots cannot import it

BEGIN_MS: Millis = 1_000
REST_MS: Millis = 100_000


class HeldIngress:
    """What another ingress has; late, as long as the file is there."""

    def __init__(self, ingress, file: Path) -> None:
        self.ingress = ingress
        self.file = file

    def due_through(self, partition: int, now_ms: Millis) -> int:
        if now_ms > BEGIN_MS and self.file.exists():
            end = self.ingress.end(partition)
            rest_ms = max(0, self.ingress.due_ms(partition, end - 1) - BEGIN_MS)
            now_ms = BEGIN_MS + rest_ms * (now_ms - BEGIN_MS) // REST_MS
        return self.ingress.due_through(partition, now_ms)

    def __getattr__(self, name: str):
        if name == "ingress":
            raise AttributeError(name)  # it is being unpickled
        return getattr(self.ingress, name)


class Hold:
    """Holds the input of a job from now on (or when somebody else begins to), until it is let go."""

    def __init__(self, directory: Path, *, begun: bool = True) -> None:
        self.file = directory / "more-input-is-to-come"
        if begun:
            self.file.touch()

    def held(self, job: Job) -> Job:
        """The same job, whose input does not end before it is let go."""
        plans = {
            task: plan
            if plan.ingress is None
            else replace(plan, ingress=HeldIngress(plan.ingress, self.file))
            for task, plan in job.deployment.plans.items()
        }
        return replace(job, deployment=replace(job.deployment, plans=plans))

    def let_go(self) -> None:
        """Let the input come to its end."""
        self.file.unlink(missing_ok=True)
