"""`generate` without Spark: its pieces, what it refuses, and what it opens again."""

import json
import pickle
import sys
import threading
from dataclasses import asdict, replace
from unittest.mock import Mock

import pytest

from snapline.batch import concat
from snapline.cli.app import main
from snapline.errors import ObjectDamaged, UsageError
from snapline.rundir.stored_input import FORMATS, VERSION, sources_of, stored_input
from snapline.spark import generate
from snapline.storage.parquet.ingress import ParquetIngress
from snapline.workload.common.base import Params

PARAMS = Params(seed=5, partitions=3, records=50, duration_ms=1_000)


@pytest.fixture
def small(monkeypatch):
    """Many pieces, many blocks."""
    monkeypatch.setattr(generate, "PIECE_RECORDS", 20)
    monkeypatch.setattr(generate, "BLOCK_RECORDS", {"log": 7, "parquet": 8})


def store(directory, workload, form, params=PARAMS):
    """What the Spark job does, in one process."""
    sources = sources_of(workload, params)
    sizes = {}
    for name, source in sources.items():
        (directory / name).mkdir(parents=True)
        pieces = generate.cut(name, source)
        written = {p: json.loads(generate.write_piece(source, p, directory, form)) for p in pieces}
        sizes[name] = generate._complete(name, source, written, directory, form)
    described = {
        "version": VERSION,
        "workload": workload,
        "format": form,
        "sources": sizes,
    }
    described["params"] = asdict(params)
    (directory / "input.json").write_text(json.dumps(described))
    return sources


def everything(ingress):
    return concat([ingress.read(p, 0, ingress.end(p)) for p in range(ingress.partitions)])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("workload", ["q12", "q3", "q8", "reachability", "sst", "mst"])
def test_what_was_stored_is_read_back_as_it_was_generated(tmp_path, small, workload, form):
    sources = store(tmp_path, workload, form)
    back = stored_input(tmp_path)
    assert (back.workload, back.params, set(back.sources)) == (workload, PARAMS, set(sources))
    for name, source in sources.items():
        back.sources[name].read(0, 0, 1)  # so that a file is open, which must stay behind
        opened = pickle.loads(pickle.dumps(back.sources[name]))
        assert opened.schema == source.schema
        assert everything(opened) == source.everything()
        assert [opened.read(1, n, n + 3).rows() for n in (0, 6, 19, 48)] == [
            source.read(1, n, n + 3).rows() for n in (0, 6, 19, 48)
        ]


def test_a_stored_input_keeps_its_size_and_skew(tmp_path, small):
    hot = replace(PARAMS, full=True, hot=30, hot_ms=400)
    sources = store(tmp_path, "q12", "log", hot)
    back = stored_input(tmp_path)
    assert back.params == hot
    assert everything(back.sources["bids"]) == sources["bids"].everything()


@pytest.mark.parametrize("form", FORMATS)
def test_a_stored_input_keeps_its_settings_and_its_watermarks(tmp_path, small, form):
    """Its records could tell a better watermark, under which nothing is late."""
    given = replace(PARAMS, settings=(("bound", 30), ("disorder", 400), ("resources", 3)))
    sources = store(tmp_path, "mst", form, given)
    back = stored_input(tmp_path)
    assert back.params == given
    for name, source in sources.items():
        opened = pickle.loads(pickle.dumps(back.sources[name]))
        for offset in range(source.records + 1):
            assert opened.watermark(2, offset) == source.watermark(2, offset)
        for now_ms in range(0, 1_000, 7):
            assert opened.due_through(1, now_ms) == source.due_through(1, now_ms)
        times = opened.read(2, 0, source.records)["time"].tolist()
        behind = [time < opened.watermark(2, n) for n, time in enumerate(times)]
        assert any(behind)


def test_row_groups_are_read_one_by_one(tmp_path, small, monkeypatch):
    store(tmp_path, "q12", "parquet")
    ingress = ParquetIngress(tmp_path / "bids")
    loaded = []
    load = ParquetIngress.load
    monkeypatch.setattr(
        ParquetIngress, "load", lambda self, p, b: loaded.append((p, b)) or load(self, p, b)
    )
    ingress.read(0, 9, 12)
    assert loaded == [(0, 1)]


def test_an_input_that_lost_a_file_or_records_is_refused(tmp_path, small):
    store(tmp_path, "q12", "parquet")
    last = tmp_path / "bids" / "part-00001-000002.parquet"
    last.unlink()
    with pytest.raises(UsageError, match="has not the 150 records"):
        stored_input(tmp_path)
    (tmp_path / "bids" / "part-00001-000000.parquet").unlink()
    with pytest.raises(UsageError, match="files of partition 1 are missing"):
        stored_input(tmp_path)


def test_a_damaged_parquet_file_is_called_so(tmp_path, small):
    store(tmp_path, "q12", "parquet")
    (tmp_path / "bids" / "part-00001-000000.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(ObjectDamaged, match="part-00001-000000"):
        stored_input(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", '{"version": 1}', '{"version": 9, "format": "log"}'])
def test_a_directory_that_is_no_input_is_refused(tmp_path, text):
    with pytest.raises(UsageError, match="holds no input: 'snapline generate' makes one"):
        stored_input(tmp_path)
    (tmp_path / "input.json").write_text(text)
    with pytest.raises(UsageError, match=r"damaged|another version"):
        stored_input(tmp_path)


def test_a_partition_without_records_still_has_its_file(tmp_path):
    class Nothing:
        partitions = 2

        def end(self, partition):
            return 0

    pieces = generate.cut("x", Nothing())
    assert [(piece.partition, piece.start, piece.stop) for piece in pieces] == [
        (0, 0, 0),
        (1, 0, 0),
    ]


@pytest.mark.parametrize(
    ("text", "path"),
    [("a/b", "a/b"), ("file:///a/b%20c", "/a/b c"), ("file://localhost/a", "/a")],
)
def test_a_target_is_a_path_or_a_file_url(text, path):
    assert str(generate.target_path(text)) == path


@pytest.fixture
def refused(monkeypatch, capsys, tmp_path):
    """Run `snapline generate`, which must refuse, before Spark starts; returns what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generate, "own_session", lambda *_: pytest.fail("Spark was started"))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", "generate", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 2
        return capsys.readouterr().err

    return run


def test_bad_input_is_said_before_spark_starts(refused, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x").touch()
    assert "there exists: name another directory" in refused("q12", "--to", "there")
    assert "there/x exists" in refused("q12", "--to", "there/x")
    assert "no workload 'q33'; did you mean q3" in refused("q33", "--to", "new")
    assert "only local or mounted paths so far" in refused("q12", "--to", "s3://bucket/x")
    assert "only local or mounted paths so far" in refused("q12", "--to", "file://host/x")
    assert "--format takes log or parquet, not 'csv'" in refused(
        "q12", "--to", "new", "--format", "csv"
    )
    assert "--duration is written as" in refused("q12", "--to", "new", "--duration", "long")
    assert "--size is full or small" in refused("q12", "--to", "new", "--size", "big")
    assert "--hot is a whole number from 0 to 100, not 300" in refused(
        "q12", "--to", "new", "--hot", "300"
    )
    assert "as in --hot 20" in refused("q12", "--to", "new", "--hot-moves", "1s")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]


def test_a_target_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write to"), generate.draft_of(tmp_path / "file/x"):
        pass


def test_what_fails_leaves_nothing_behind(tmp_path):
    def fail():
        with generate.draft_of(tmp_path / "new") as draft:
            (draft / "x").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


class SlowTracker:
    """Tells of no job, and takes its time once everything is written."""

    def __init__(self) -> None:
        self.asked, self.answers = threading.Event(), threading.Event()

    def getJobIdsForGroup(self, group: str) -> list[int]:
        self.asked.set()
        assert self.answers.wait(60)
        return []


def test_that_all_pieces_are_written_is_the_last_word(monkeypatch):
    """Also if the watcher was just about to say how many there were before."""
    monkeypatch.setattr(generate, "PROGRESS_SECONDS", 0)
    tracker, seen = SlowTracker(), []
    context = Mock(statusTracker=lambda: tracker)
    with generate._watched(context, 6, lambda done, pieces: seen.append((done, pieces))):
        assert tracker.asked.wait(60)
        threading.Timer(0.2, tracker.answers.set).start()
    assert seen[-1] == (6, 6)
    assert (0, 6) in seen
