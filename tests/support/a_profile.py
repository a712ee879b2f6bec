"""A profile that nobody measured, with costs of the usual size."""

from dataclasses import replace

from snapline.scale.profile import Fit, Profile

COSTS = {
    "wake_us": 30.0,
    "step_us": 10.0,
    "read_us": 0.3,
    "message_us": 20.0,
    "row_us": 0.2,
    "byte_us": 0.001,
    "header_us": 15.0,
    "header_byte_us": 0.01,
    "frame_us": 15.0,
    "log_us": 4.0,
    "log_byte_us": 0.002,
    "marker_us": 20.0,
    "write_us": 0.1,
    "capture_us": 300.0,
    "capture_byte_us": 0.005,
    "restore_byte_us": 0.01,
    "beat_us": 300.0,
    "driver_beat_us": 200.0,
    "link_us": 60.0,
    "link_busy_us": 5.0,
    "link_byte_us": 0.0005,
    "control_us": 100.0,
    "store_us": 2_000.0,
    "store_byte_us": 0.002,
    "sync_us": 2_000.0,
    "detect_us": 5_000.0,
    "launch_us": 300_000.0,
}
PROFILE = Profile(COSTS, {"q12": 0.03, "q3": 0.04}, {"cores": 2}, Fit(("q12",), (1, 2), ()))


def with_cost(name: str, us: float) -> Profile:
    """The same profile, in which one cost is another."""
    return replace(PROFILE, costs_us={**COSTS, name: us})
