"""The fingerprint of a real run covers its input: a resume with another one is refused with a sentence."""

import json
import os
import shutil
from dataclasses import asdict, replace

import pytest

from snapline.batch import Batch
from snapline.errors import RunDamaged, UsageError
from snapline.rundir.directory import RunDirectory
from snapline.rundir.inputs import identity_of
from snapline.rundir.program import build_job, find_program
from snapline.rundir.spec import Spec, spec_of
from snapline.rundir.stored_input import DESCRIPTION, VERSION, sources_of
from snapline.runs.run import prepare_resume
from snapline.storage.files.ingress import FileIngress
from snapline.storage.list_ingress import ListIngress
from snapline.storage.parquet.ingress import ParquetIngress, write_part
from snapline.workload.common.base import Params
from snapline.workload.common.generated import GeneratedFeed, StoredAsGenerated
from snapline.workload.nexmark.model import bids
from stored_inputs import write_ingress
from written_ledger import Coordinator

SPEC = Spec("q12", slots=2, rate=100, duration_ms=1_000, size="small")
OTHERS = [
    {"seed": 2},
    {"rate": 200},
    {"duration_ms": 2_000},
    {"hot": 20},
    {"hot": 20, "hot_ms": 500},
    {"size": "full"},
    {"rate": "max", "records": 100},
]


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def fingerprint(**changed):
    spec = replace(SPEC, **changed)
    return build_job(spec, find_program(spec)).deployment.fingerprint


def test_whatever_the_input_is_computed_from_is_part_of_the_fingerprint():
    found = [fingerprint(**other) for other in ({}, *OTHERS)]
    assert len({*found}) == len(found)
    graphs = {fingerprint(seed=seed).partition("-")[0] for seed in (1, 2)}
    assert len(graphs) == 1, "the dataflow is the same"
    assert fingerprint() == fingerprint(faults="kill slot=1 at=1s", interval_ms=700)


def test_a_rule_of_ones_own_is_known_by_its_records():
    def source(factor):
        rule = lambda params, partition, offsets: {"n": offsets * factor}  # noqa: E731
        return GeneratedFeed("mine", rule, 100).bind(2, 1_000)

    assert identity_of(source(2)) == identity_of(source(2)) != identity_of(source(3))


def rows(first, count=4):
    return Batch.of(time=list(range(count)), n=list(range(first, first + count)))


def test_records_in_memory_are_known_by_both_ends():
    sources = [
        ListIngress([[rows(0, 100)], [rows(5, 7)]]),
        ListIngress([[rows(0, 99)], [rows(5, 7)]]),
    ]
    assert identity_of(sources[0]) != identity_of(sources[1])


def test_a_stored_log_is_known_by_the_checksums_of_its_blocks(tmp_path):
    for name, first in (("a", 0), ("same", 0), ("b", 1)):
        write_ingress(tmp_path / name, [[rows(0), rows(first)], [rows(7)]])
    one, same, other = (FileIngress(tmp_path / name) for name in ("a", "same", "b"))
    assert identity_of(one) == identity_of(same) != identity_of(other)
    made = bids(Params(1, 2, 8))
    assert identity_of(StoredAsGenerated(one, made)) == identity_of(StoredAsGenerated(same, made))
    assert identity_of(StoredAsGenerated(one, made)) != identity_of(StoredAsGenerated(other, made))


def test_a_stored_parquet_input_is_known_by_its_footers(tmp_path):
    for name, first in (("a", 0), ("same", 0), ("b", 1)):
        (tmp_path / name).mkdir()
        write_part(tmp_path / name, 0, 0, rows(0).schema, [rows(0), rows(first)])
    one, same, other = (ParquetIngress(tmp_path / name) for name in ("a", "same", "b"))
    assert identity_of(one) == identity_of(same) != identity_of(other)


# A resume.


def begun(tmp_path, **changed):
    """A run that has decided something, with the fingerprint that it has today."""
    said = asdict(replace(SPEC, **changed))
    directory = RunDirectory.create(tmp_path, "q12", "aligned", said)
    job = build_job(spec_of(directory), find_program(spec_of(directory)))
    Coordinator(directory.store, directory.outlet, run=directory.identity, of=job)
    return directory


def test_a_resume_with_another_input_is_refused_before_anything_starts(tmp_path):
    directory = begun(tmp_path)
    prepare_resume(directory.name, runs=tmp_path)
    directory.write("run.json", {**directory.spec(), "seed": 7})
    with pytest.raises(UsageError, match="started with another input: resume it with what it was"):
        prepare_resume(directory.name, runs=tmp_path)


def test_a_resume_of_a_stored_input_that_was_written_anew_is_refused(tmp_path):
    stored = tmp_path / "stored"

    def store(seed):
        shutil.rmtree(stored, ignore_errors=True)
        params = Params(1, 2, 8)
        [(name, _)] = sources_of("q12", params).items()
        source = sources_of("q12", replace(params, seed=seed))[name]
        write_ingress(stored / name, [[source.read(p, 0, 8)] for p in range(2)])
        said = {"version": VERSION, "format": "log", "workload": "q12", "params": asdict(params)}
        said["sources"] = {name: {"records": 16}}
        (stored / DESCRIPTION).write_text(json.dumps(said))

    store(seed=1)
    directory = begun(tmp_path / "runs", input=str(stored))
    prepare_resume(directory.name, runs=tmp_path / "runs")
    store(seed=2)
    with pytest.raises(UsageError, match="started with another input"):
        prepare_resume(directory.name, runs=tmp_path / "runs")


def test_a_damaged_run_is_bad_input(tmp_path):
    directory = begun(tmp_path)
    (directory.path / "store" / "decision" / "00000001.obj").write_bytes(b"")
    with pytest.raises(RunDamaged, match="decision/00000001"):
        prepare_resume(directory.name, runs=tmp_path)
