"""A profile: what work costs on one machine, how that was measured, and how far it was checked.

It is a file of plain data with a version. `snapline calibrate` writes it, `snapline simulate --profile`
uses it. Reading is strict: a profile of another version, or one with a cost that nobody knows, is refused.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from snapline.core.forms import Json
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.metrics.json_form import from_json, to_json
from snapline.rundir.spec import Spec
from snapline.sim.world.costs import Costs

VERSION: Final = 3

MEASURED: Final = (
    *(
        "wake_us",
        "step_us",
        "read_us",
        "message_us",
        "row_us",
        "byte_us",
        "header_us",
        "header_byte_us",
        "frame_us",
        "log_us",
        "log_byte_us",
    ),
    *("marker_us", "write_us", "capture_us", "capture_byte_us", "restore_byte_us", "beat_us"),
    *("driver_beat_us", "link_us", "link_busy_us", "link_byte_us", "control_us"),
    *("store_us", "store_byte_us", "sync_us", "detect_us", "launch_us"),
)
"""The costs that a profile has, by their names in `Costs`."""

_WHOLE: Final = {each.name for each in fields(Costs) if each.type in ("Micros", int)}
_REAL: Final[Mapping[str, int]] = {
    "timeout_us": 2_000_000,
    "lease_us": 5_000_000,
    "register_us": 60_000_000,
    "batch_us": 0,
    "record_us": 0,
}
"""How patient a real driver is; and what other costs stand for."""


class Checked(StrEnum):
    """What was compared with real runs."""

    BYTES = "bytes"  # all bytes of the run but those of the control connections, per record
    CAPACITY = "capacity"  # the rate at full speed, over that of the protocol without checkpoints
    RESTART = "restart"  # from the loss of a slot until all tasks are ready


BARS: Final[Mapping[Checked, float]] = {
    Checked.BYTES: 0.02,
    Checked.CAPACITY: 0.10,
    Checked.RESTART: 0.25,
}
"""The largest error, relative to what was measured, with which a prediction counts as validated."""


def batch_of(spec: Spec) -> int | None:
    """How many records a message of a run has at most, if somebody has said that."""
    return dict(spec.options).get("batch")


def rate_of(spec: Spec) -> int | None:
    """How many records a second a run gets; None: all are due at once."""
    return None if spec.rate == "max" else spec.rate


@dataclass(frozen=True, slots=True)
class PredictionCheck:
    """One prediction beside what was measured."""

    what: Checked
    workload: str
    protocol: str
    slots: int
    predicted: float
    measured: float
    cores: int  # that all slots shared, in both runs
    interval_ms: Millis
    rate: int | None  # records a second; None: all were due at once
    batch: int | None = None  # records that a message had at most; None: the engine decided that

    @property
    def error(self) -> float:
        """By how much the prediction is too high, relative to what was measured."""
        return self.predicted / self.measured - 1 if self.measured else 0.0

    @property
    def holds(self) -> bool:
        """Whether the error is within the bar."""
        return abs(self.error) <= BARS[self.what]

    def __str__(self) -> str:
        values = f"predicted {self.predicted:,.4g}, measured {self.measured:,.4g}"
        return f"{self.what}: {values}, error {self.error:+.1%}"


@dataclass(frozen=True, slots=True)
class Residual:
    """One run of the calibration: CPU time of its slots, measured and by the costs that were found."""

    run: str  # what was run
    measured_us: float  # per second
    fitted_us: float

    @property
    def error(self) -> float:
        """By how much the costs are too high for this run."""
        return self.fitted_us / self.measured_us - 1


@dataclass(frozen=True, slots=True)
class Fit:
    """How the costs of CPU time were found."""

    workloads: tuple[str, ...]
    slots: tuple[int, ...]
    residuals: tuple[Residual, ...]

    @property
    def worst(self) -> float:
        """The largest error of a run, of either sign."""
        return max((abs(each.error) for each in self.residuals), default=0.0)


@dataclass(frozen=True, slots=True)
class Profile:
    """The costs of a machine."""

    costs_us: Mapping[str, float]  # by the names in `MEASURED`
    generate_us: Mapping[str, float]  # CPU time to make one record, by workload
    environment: Mapping[str, Any]  # the machine on which it was measured
    fit: Fit
    checks: tuple[PredictionCheck, ...] = ()  # predictions beside what was measured
    version: int = VERSION

    def costs(self, workload: str, cores: int | None) -> Costs:
        """The costs of a world in which a workload runs, on so many cores that its slots share."""
        known: dict[str, Any] = {
            name: round(us) if name in _WHOLE else us for name, us in self.costs_us.items()
        }
        known["read_us"] += self.generate_us.get(workload, 0.0)
        return Costs(**known, **_REAL, cores=cores)

    def with_checks(self, checks: tuple[PredictionCheck, ...]) -> "Profile":
        """The same profile, with these checks instead of those it had."""
        return replace(self, checks=checks)


def write_profile(profile: Profile) -> str:
    """The text of a profile."""
    return json.dumps({"snapline_profile": VERSION, **_written(profile)}, indent=2) + "\n"


def _written(profile: Profile) -> dict[str, Json]:
    return {
        "costs_us": dict(profile.costs_us),
        "generate_us": dict(profile.generate_us),
        "environment": dict(profile.environment),
        "fit": to_json(profile.fit),
        "checks": [to_json(check) for check in profile.checks],
    }


def read_profile(path: Path) -> Profile:
    """The profile in a file. Raises UsageError."""
    try:
        written = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(
            f"cannot read the profile {path}: {error.strerror}; 'snapline calibrate --to {path}' makes one"
        ) from error
    except (ValueError, RecursionError) as error:  # the latter: brackets, thousands deep
        raise UsageError(f"{path} is no profile: it is not JSON ({error})") from error
    if not isinstance(written, dict) or "snapline_profile" not in written:
        raise UsageError(f"{path} is no profile: 'snapline calibrate --to FILE' makes one")
    if written["snapline_profile"] != VERSION:
        raise UsageError(
            f"{path} is a profile of version {written['snapline_profile']}, and this Snapline reads "
            f"version {VERSION}: make it again with 'snapline calibrate'"
        )
    try:
        return _read(written)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path} is no whole profile: {error}") from error


def _read(written: dict[str, Any]) -> Profile:
    costs = {name: _cost(name, us) for name, us in written["costs_us"].items()}
    if set(costs) != set(MEASURED):
        odd = sorted(set(costs) ^ set(MEASURED))
        raise ValueError(f"these costs are missing, or unknown: {', '.join(odd)}")
    return Profile(
        costs,
        {str(name): _cost(name, us) for name, us in written["generate_us"].items()},
        dict(written["environment"]),
        from_json(Fit, written["fit"]),
        tuple(from_json(PredictionCheck, each) for each in written["checks"]),
    )


def _cost(name: str, us: Any) -> float:
    if isinstance(us, bool) or not isinstance(us, int | float) or not 0 <= us < 1e9:
        raise ValueError(f"{name} is {us!r}, and not a number of microseconds")
    return float(us)
