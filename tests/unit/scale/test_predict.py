"""Simulated runs with figures: they are right, repeatable, and diluted ones stand for whole ones."""

from dataclasses import replace

import pytest

from a_profile import PROFILE
from snapline.errors import UsageError
from snapline.metrics.json_form import to_json
from snapline.protocols import PROTOCOLS
from snapline.rundir.spec import Spec
from snapline.scale.predict import predict

RUN = Spec("q12", protocol="uncoordinated", slots=2, rate=2_000, duration_ms=3_000, interval_ms=500)
KILLED = replace(RUN, faults="kill slot=1 at=1500ms")


@pytest.fixture(scope="module")
def figures():
    return predict(KILLED, PROFILE, cores=2).figures


def test_all_that_a_real_run_measures_is_there(figures):
    assert figures.records_read == figures.records_written == 6_000
    assert figures.commits > 2
    assert (figures.kills, figures.lost) == (1, 1)
    assert figures.detection_s == (0.005,)
    assert figures.restart_s[0] >= 0.3
    assert figures.latency_ms.p50 > 0
    assert figures.committed_latency_ms.p50 > figures.latency_ms.p50
    assert figures.checkpoint_phases_ms is not None
    assert figures.bytes.log > 0
    assert figures.resources.cpu_s["slot/0"] > 0
    assert figures.resources.cpu_s["driver"] > 0
    assert figures.read_again > 0


def test_memory_is_not_claimed_to_be_known(figures):
    assert figures.resources.rss_bytes == {}


def test_the_same_run_has_the_same_figures_again(figures):
    assert to_json(predict(KILLED, PROFILE, cores=2).figures) == to_json(figures)


@pytest.mark.parametrize(
    "protocol", [name for name, p in PROTOCOLS.items() if p.saves and not p.publishes_at_once]
)
def test_every_protocol_gets_through_a_kill(protocol):
    found = predict(replace(KILLED, protocol=protocol), PROFILE, cores=1)
    assert found.problem is None
    assert found.figures.records_read == 6_000
    assert len(found.figures.restart_s) == 1


def test_a_diluted_run_has_the_counts_of_the_whole_one():
    whole = predict(replace(RUN, rate=20_000), PROFILE).figures
    thin = predict(replace(RUN, rate=20_000), PROFILE, dilution=10).figures
    assert thin.records_read == whole.records_read
    assert thin.bytes.payload == pytest.approx(whole.bytes.payload, rel=0.02)
    assert thin.bytes.log == pytest.approx(whole.bytes.log, rel=0.02)
    assert thin.bytes.snapshots == pytest.approx(whole.bytes.snapshots, rel=0.25)
    assert thin.bytes.per_record == pytest.approx(whole.bytes.per_record, rel=0.1)
    cpu = [sum(each.resources.cpu_s.values()) for each in (thin, whole)]
    assert cpu[0] == pytest.approx(cpu[1], rel=0.25)  # how often slots wake is chance
    assert thin.latency_ms is None


def test_a_diluted_run_reads_again_about_as_much_as_the_whole_one():
    fast = replace(KILLED, rate=20_000)
    whole, thin = (predict(fast, PROFILE, dilution=k).figures for k in (1, 10))
    assert thin.read_again == pytest.approx(whole.read_again, rel=0.5)
    assert [each.back_records for each in thin.rollbacks] == [None]


@pytest.mark.parametrize(
    ("spec", "dilution", "said"),
    [
        (replace(RUN, endless=True), 1, "--duration"),
        (RUN, 2_000, "--dilute"),
        (replace(RUN, faults="kill slot=7 at=1s"), 1, "slot"),
    ],
)
def test_a_run_that_cannot_be_is_refused(spec, dilution, said):
    with pytest.raises(UsageError, match=said):
        predict(spec, PROFILE, dilution=dilution)
