"""Simulates the cells of a sweep whose launcher is `simulated`, with the costs of a profile.

A result has the form of one that was measured. It also says how it came about, and which mark each kind of
figure has: how far it can be trusted, why, and by how much it is taken to be wrong at most.
"""

import hashlib
import time
from pathlib import Path
from typing import Any

from snapline.experiments.sweep_directory import environment
from snapline.experiments.sweep_file import SIMULATED, SweepCell
from snapline.metrics.json_form import to_json
from snapline.scale.marks import CHECKED_BY, marks
from snapline.scale.predict import predict
from snapline.scale.profile import BARS, Profile, write_profile

NOT_JUDGED = "it was simulated: nobody judges its output"


class CellSimulator:
    """Simulates cells with one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._digest = hashlib.sha256(write_profile(profile).encode()).hexdigest()[:20]

    @property
    def profile(self) -> str:
        """A digest of the profile: results of another one do not count."""
        return self._digest

    def result(self, cell: SweepCell, place: Path) -> dict[str, Any]:
        """Simulate a cell. Raises UsageError if there cannot be such a run."""
        column, spec, begun_s = cell.column, cell.spec, time.time()
        found = predict(spec, self._profile, cores=column.cores, dilution=column.dilution)
        known = {
            figure: [mark.value, why, BARS[CHECKED_BY[figure]]]
            for figure, (mark, why) in marks(found, self._profile).items()
        }
        return {
            "turn": cell.turn,
            "again": column.again,
            "varied": dict(column.varied),
            "spec": spec.said(),
            "launcher": SIMULATED,
            "run": f"simulated {column.label}, turn {cell.turn}",
            "kept": "unknown",
            "because": found.problem or NOT_JUDGED,
            "metrics": to_json(found.figures),
            "foreign": 0.0,
            "attempt": 1,
            "begun_s": round(begun_s, 3),
            "elapsed_s": round(time.time() - begun_s, 3),
            "environment": environment(place),
            "simulated": {
                "profile": self._digest,
                "machine": self._profile.environment.get("cpu"),
                "cores": found.cores,
                "dilution": found.dilution,
                "problem": found.problem,
                "virtual_s": found.simulated_s,
            },
            "marks": known,
        }
