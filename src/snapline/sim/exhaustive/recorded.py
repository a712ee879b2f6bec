"""A counterexample in a file: the space, and the steps in it that break something."""

import json
from dataclasses import dataclass
from typing import Any

from snapline.core.protocol import CheckpointProtocol
from snapline.errors import UsageError
from snapline.sim.exhaustive.course import SteppedRun
from snapline.sim.exhaustive.lanes import Lane
from snapline.sim.exhaustive.order import Deviation
from snapline.sim.exhaustive.search import Counterexample
from snapline.sim.exhaustive.small import GRAPHS, RECORDS_MAX, Small

VERSION = 1


@dataclass(frozen=True, slots=True)
class RecordedCounterexample:
    """What the file of a counterexample says."""

    protocol: str
    small: Small
    steps: tuple[Lane, ...]
    deviations: tuple[Deviation, ...]

    def to_json(self, found: Counterexample) -> dict[str, Any]:
        """The file, with what was found."""
        return {
            "explore": VERSION,
            "protocol": self.protocol,
            "graph": self.small.graph,
            "records": self.small.records,
            "invariant": found.violation.name,
            "story": found.violation.story,
            "unusual": [[kind, str(lane)] for kind, lane in self.deviations],
            "steps": [str(lane) for lane in self.steps],
        }

    @staticmethod
    def from_json(text: str) -> "RecordedCounterexample":
        """What a file says. Raises UsageError."""
        try:
            fields = json.loads(text)
            if fields["explore"] != VERSION:
                raise UsageError("this file was written by another version of Snapline")
            small = Small(fields["graph"], int(fields["records"]))
            if small.graph not in GRAPHS or not 1 <= small.records <= RECORDS_MAX:
                raise UsageError("this file names a graph that cannot be searched")
            unusual = [Deviation(str(kind), Lane.parse(lane)) for kind, lane in fields["unusual"]]
            steps = tuple(Lane.parse(step) for step in fields["steps"])
            return RecordedCounterexample(str(fields["protocol"]), small, steps, tuple(unusual))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"this is not a file of `snapline explore`: {error!r}") from error

    def again(self, protocol: CheckpointProtocol) -> Counterexample | None:
        """Take the steps once more; None if nothing breaks."""
        course = SteppedRun.begin(self.small, self.small.job(protocol))
        course.follow(self.steps)
        taken = tuple(course.taken)
        course.conclude()
        if course.violation is None:
            return None
        return Counterexample(course.violation, taken, self.deviations)
