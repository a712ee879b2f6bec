"""Costs for those who have not calibrated: round numbers of the right size, measured on no machine.

They let `snapline advise` answer at once. Whatever is predicted with them is marked as not validated.
"""

from typing import Final

from snapline.scale.profile import Fit, Profile

ROUGH: Final = Profile(
    {
        "wake_us": 60.0,
        "step_us": 5.0,
        "read_us": 0.02,
        "message_us": 25.0,
        "row_us": 0.02,
        "byte_us": 0.0005,
        "header_us": 15.0,
        "header_byte_us": 0.05,
        "frame_us": 10.0,
        "log_us": 4.0,
        "log_byte_us": 0.002,
        "marker_us": 20.0,
        "write_us": 0.05,
        "capture_us": 300.0,
        "capture_byte_us": 0.002,
        "restore_byte_us": 0.01,
        "beat_us": 500.0,
        "driver_beat_us": 200.0,
        "link_us": 50.0,
        "link_busy_us": 1.0,
        "link_byte_us": 0.0003,
        "control_us": 500.0,
        "store_us": 500.0,
        "store_byte_us": 0.0025,
        "sync_us": 2_000.0,
        "detect_us": 5_000.0,
        "launch_us": 500_000.0,
    },
    generate_us={},
    environment={},
    fit=Fit((), (), ()),
)
"""The costs; there is nothing that they were fitted to, or compared with."""
