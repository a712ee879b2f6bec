"""What a run has staged is its input from then on, part of its fingerprint, and never half there."""

import os

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.dataflow.feeds.frames import Unstaged, columns_feed
from snapline.dataflow.graph import Dataflow
from snapline.errors import RunDamaged, UsageError
from snapline.rundir.directory import RunDirectory
from snapline.rundir.program import build_job, find_program
from snapline.rundir.spec import Spec, spec_from, spec_of
from snapline.rundir.stored_input import staged_place, unstaged
from snapline.runs.run import PreparedRun, create_run
from snapline.runs.sources.staging import check_frames
from snapline.storage.files.ingress import describe_ingress, write_segment
from snapline.storage.files.places import make_directory

SPEC = Spec("mine", slots=2, duration_ms=40)


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture
def directory(tmp_path):
    return RunDirectory.create(tmp_path, "mine", SPEC.protocol, SPEC.said())


def flow_of(rate=None, *, of_session=True):
    flow = Dataflow("mine")
    columns = {"time": "bigint", "price": "decimal(5,2)"}
    feed = columns_feed(columns, lambda spark: None, rate=rate, of_session=of_session)
    flow.source(feed, name="bids").sink("all")
    return flow


def stage(directory, prices=(1, 2, 3, 4)):
    place = staged_place(directory, "bids")
    make_directory(place)
    rows = Batch({"time": np.arange(4) * 20 + 1_000, "price": np.array(prices, np.int64)})
    describe_ingress(place, rows.schema, [[write_segment(place, 0, 0, [rows])], []])
    return place


def source(program):
    return program.flow.graph.nodes["bids"].bound


def test_before_it_is_staged_a_frame_can_be_deployed_and_not_read(directory):
    assert list(unstaged(flow_of(), directory)) == ["bids"]
    program = find_program(SPEC, flow_of(), directory)
    assert isinstance(source(program), Unstaged)
    assert build_job(SPEC, program).deployment.slots == 2


def test_once_it_is_staged_it_is_the_input_of_the_run(directory):
    stage(directory)
    assert unstaged(flow_of(), directory) == {}
    ingress = source(find_program(SPEC, flow_of(), directory))
    assert ingress.read(0, 0, 10)["price"].tolist() == [1, 2, 3, 4]
    assert ingress.due_ms(0, 3) == 60


def test_a_duration_that_was_given_cuts_it(directory):
    assert [
        spec_from({"flow": "mine", **given}, str).cut for given in ({}, {"duration": "1s"})
    ] == [
        False,
        True,
    ]
    assert not spec_from({"flow": "q12", "duration": "1s"}, str).cut, "a workload has its size"
    stage(directory)
    cut = Spec("mine", slots=2, duration_ms=40, cut=True)
    assert source(find_program(cut, flow_of(), directory)).end(0) == 2
    assert source(find_program(SPEC, flow_of(), directory)).end(0) == 4


def test_its_rows_and_when_they_are_due_are_part_of_the_fingerprint(directory):
    def fingerprint(rate=None):
        return build_job(SPEC, find_program(SPEC, flow_of(rate), directory)).deployment.fingerprint

    found = {fingerprint()}
    stage(directory)
    found |= {fingerprint(), fingerprint(10)}
    stage(directory, prices=(1, 2, 3, 5))
    found.add(fingerprint())
    assert len(found) == 4


def test_a_damaged_description_is_damage_of_the_run(directory):
    place = stage(directory)
    (place / "input.obj").write_bytes(b"nothing")
    with pytest.raises(RunDamaged, match=r"the input in .* is damaged"):
        find_program(SPEC, flow_of(), directory)


def test_a_frame_needs_its_session_only_until_it_is_staged(directory):
    with pytest.raises(UsageError, match=r"'bids' is a DataFrame.*sl\.run\(flow, spark\)"):
        check_frames(flow_of(), SPEC, None, directory)
    check_frames(flow_of(of_session=False), SPEC, None, directory)
    stage(directory)
    check_frames(flow_of(), SPEC, None, directory)


def test_a_run_says_what_it_stages_and_what_its_output_means(tmp_path, directory):
    assert (directory.staged, directory.meanings) == ([], {})
    program = find_program(SPEC, flow_of())
    prepared = PreparedRun(SPEC, build_job(SPEC, program), (), program, None, tmp_path)
    made = create_run(prepared)
    assert made.staged == ["bids"]
    assert made.meanings == {"all": {"price": "decimal(5,2)"}}
    assert spec_of(made) == SPEC, "it is no part of what was asked for"


def test_of_a_staged_input_that_lost_a_file_the_run_is_damaged(directory):
    place = stage(directory)
    next(place.glob("*.rows")).unlink()
    with pytest.raises(RunDamaged, match=r"the input in .* is damaged: there is no .*\.rows"):
        find_program(SPEC, flow_of(), directory)
