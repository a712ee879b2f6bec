"""Every cost moves the figure that it should, and leaves those alone with which it has nothing to do."""

from functools import cache

import pytest

from a_profile import COSTS, PROFILE, with_cost
from snapline.rundir.spec import Spec
from snapline.scale.predict import predict
from snapline.scale.profile import MEASURED

KILL = "kill slot=1 at=1s"


def spec(protocol, faults=""):
    return Spec(
        "q12",
        protocol=protocol,
        slots=2,
        rate=2_000,
        duration_ms=2_000,
        interval_ms=300,
        faults=faults,
        size="small",
    )


@cache
def usual(protocol, faults=""):
    return predict(spec(protocol, faults), PROFILE).figures


def slots_cpu(figures):
    return sum(s for name, s in figures.resources.cpu_s.items() if name != "driver")


def driver_cpu(figures):
    return figures.resources.cpu_s["driver"]


def latency(figures):
    return figures.latency_ms.p50


def slowest(figures):
    return figures.latency_ms.p99


def blocked(figures):
    return figures.checkpoint_phases_ms.blocked.mean


def background(figures):
    return figures.checkpoint_phases_ms.background.mean


def reporting(figures):
    return figures.checkpoint_phases_ms.reporting.mean


def restart(figures):
    return figures.restart_s[0]


def detection(figures):
    return figures.detection_s[0]


#: cost: (what it is raised to, the protocol, the faults, the figure that must rise)
MOVES = {
    "wake_us": (300, "none", "", slots_cpu),
    "step_us": (300, "none", "", slots_cpu),
    "read_us": (30, "none", "", slots_cpu),
    "message_us": (200, "none", "", slots_cpu),
    "row_us": (20, "none", "", slots_cpu),
    "byte_us": (10, "none", "", slots_cpu),
    "header_us": (200, "hmnr", "", slots_cpu),
    "header_byte_us": (10, "hmnr", "", slots_cpu),
    "frame_us": (150, "none", "", slots_cpu),
    "log_us": (200, "uncoordinated", "", slots_cpu),
    "log_byte_us": (2, "uncoordinated", "", slots_cpu),
    "marker_us": (20_000, "aligned", "", slots_cpu),
    "write_us": (100, "none", "", slots_cpu),
    "capture_us": (30_000, "aligned", "", blocked),
    "capture_byte_us": (20, "aligned", "", slots_cpu),
    "restore_byte_us": (200, "aligned", KILL, restart),
    "beat_us": (30_000, "none", "", slots_cpu),
    "driver_beat_us": (20_000, "none", "", driver_cpu),
    "link_us": (20_000, "none", "", latency),
    "link_busy_us": (2_000, "none", "", latency),
    "link_byte_us": (200, "none", "", slowest),
    "control_us": (20_000, "aligned", "", reporting),
    "store_us": (50_000, "aligned", "", background),
    "store_byte_us": (50, "aligned", "", background),
    "sync_us": (50_000, "uncoordinated", "", background),
    "detect_us": (100_000, "aligned", KILL, detection),
    "launch_us": (900_000, "aligned", KILL, restart),
}

#: cost: a protocol under which it changes no CPU time, because nothing of the kind is done there
SPARES = {
    "header_us": "uncoordinated",
    "header_byte_us": "uncoordinated",
    "log_us": "aligned",
    "log_byte_us": "aligned",
    "marker_us": "none",
    "capture_us": "none",
    "capture_byte_us": "none",
}


def test_every_cost_of_a_profile_is_tried():
    assert set(MOVES) == set(MEASURED) == set(COSTS)


@pytest.mark.parametrize("name", MOVES)
def test_a_cost_moves_its_figure(name):
    raised, protocol, faults, figure = MOVES[name]
    dearer = predict(spec(protocol, faults), with_cost(name, raised)).figures
    assert figure(dearer) > 1.2 * figure(usual(protocol, faults))


@pytest.mark.parametrize("name", SPARES)
def test_what_is_not_done_costs_nothing(name):
    raised, protocol = MOVES[name][0], SPARES[name]
    dearer = predict(spec(protocol), with_cost(name, raised)).figures
    assert slots_cpu(dearer) == slots_cpu(usual(protocol))


def test_slots_that_share_one_core_are_about_half_as_fast_as_with_two():
    fast = Spec("q12", protocol="none", slots=2, rate="max", records=1_000_000, size="small")
    one, two = (predict(fast, PROFILE, cores=cores).figures.rate.read for cores in (1, 2))
    assert 1.5 * one < two < 2.05 * one  # with two, slots sometimes wait for each other
