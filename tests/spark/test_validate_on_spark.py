"""The judge on Spark says what the judge in process says, field by field."""

import json
import sys
from collections import Counter
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import mutants
from snapline.batch import Batch, Varlen
from snapline.cli.app import main
from snapline.errors import UsageError
from snapline.storage.parquet.arrow import to_arrow
from snapline.systems.recorded import frames as recorded_frames
from snapline.validate import check
from snapline.validate.causes import Cause
from snapline.validate.judged import Judged, Witness
from snapline.validate.on_spark import causes as spark_causes
from snapline.validate.on_spark import judge as on_spark

pytestmark = pytest.mark.spark
NUMBERS = count()


@pytest.fixture
def frame(spark, tmp_path):
    """Makes a DataFrame of a batch, as Spark meets them: from a file."""

    def make(batch: Batch):
        path = tmp_path / f"{next(NUMBERS)}.parquet"
        parquet.write_table(pa.Table.from_batches([to_arrow(batch)]), path)
        return spark.read.parquet(str(path))

    return make


def test_ten_thousand_mutants_are_judged_alike_in_one_job(frame):
    cases = mutants.cases(10_000, seed=6)
    found = on_spark.judge_cases(
        frame(cases.inputs), frame(cases.outputs), frame(cases.late), cases.size_ms
    )
    right = check.judge_cases(cases.inputs, cases.outputs, cases.late, cases.size_ms)
    assert found == right
    assert {n for n, judged in found.items() if judged.leading != cases.expected(n)} == set()


def scramble(seed: int) -> tuple[Batch, Batch, Batch]:
    """Outputs that are wrong in many ways at once, and some whose positions are not unique."""
    dice = np.random.default_rng(seed)
    case, id = np.divmod(np.arange(3_000), 10)
    words = np.array(["ab", "a", "\u00e9", "z"])
    resource = words[dice.integers(0, 4, 3_000)]
    time = dice.integers(-20, 20, 3_000)
    inputs = Batch.of(
        case=case,
        id=id,
        time=time,
        resource=list(resource),
        post=dice.random(3_000) < 0.3,
        watermark=time + dice.integers(0, 30, 3_000),
    )
    outputs = [
        (
            n // 3,
            str(words[dice.integers(4)]),
            int(dice.integers(-2, 2)) * 10,
            int(dice.integers(5)),
        )
        for n in range(900)
    ]
    lists = [[dice.integers(-1, 11, dice.integers(4)).tolist() for _ in outputs] for _ in range(2)]
    for n in range(0, 900, 2):  # half of them claim what is theirs
        number, name, window, _ = outputs[n]
        mine = (case == number) & (resource == name) & (time // 10 * 10 == window)
        lists[0][n] = id[mine & ~inputs["post"]].tolist() * (1 + (n % 9 == 0))
        lists[1][n] = id[mine & inputs["post"]].tolist()
        if n % 6 == 4:  # the next one has a part of it
            outputs[n + 1] = (number, name, window, int(dice.integers(5)))
            lists[0][n], lists[0][n + 1] = lists[0][n][:1], lists[0][n][1:]
    late = dice.integers(-1, 11, 900)
    return (
        inputs,
        Batch.of(
            case=[n for n, *_ in outputs],
            resource=[name for _, name, *_ in outputs],
            window=[window for *_, window, _ in outputs],
            position=[position for *_, position in outputs],
            gets=[len(ids) - (n % 7 == 0) for n, ids in enumerate(lists[0])],
            posts=[len(ids) for ids in lists[1]],
            get_ids=Varlen.of("list", lists[0]),
            post_ids=Varlen.of("list", lists[1]),
        ),
        Batch.of(case=dice.integers(0, 300, 900), id=late, position=np.arange(900)),
    )


def test_so_are_outputs_that_are_wrong_in_many_ways_without_a_broadcast(frame, monkeypatch):
    monkeypatch.setattr(spark_causes, "BROADCAST_ROWS_MAX", 0)
    inputs, outputs, late = scramble(7)
    frames = [frame(table) for table in (inputs, outputs, late)]
    for given in ({"until_ms": 10}, {}):
        right = check.judge_cases(inputs, outputs, late, 10, lateness_ms=2, **given)
        found = on_spark.judge_cases(*frames, 10, lateness_ms=2, **given)
        assert found == right
    kinds = Counter(cause for judged in right.values() for cause in judged.causes)
    assert kinds.keys() == {*Cause}


def test_one_stream_without_positions_or_late_output(frame):
    inputs = Batch.of(id=[1, 2, 3, 4], time=[0, 5, 12, 25], resource=[7, 7, 7, 7])
    outputs = Batch.of(
        resource=[7, 7, 7], window=[0, 10, 0], count=[2, 1, 1], ids=[[2, 1], [3], [2]]
    )
    judged = on_spark.judge_frames(frame(inputs), frame(outputs), None, 10)
    assert judged == check.judge(inputs, outputs, None, 10)
    assert judged == Judged(
        inputs=4,
        outputs=3,
        late=0,
        lost=1,
        repeated=1,
        reliable=2,
        counted=3,
        late_events=0,
        causes={Cause.DUPLICATE: 1, Cause.TRUNCATED: 1},
        witnesses={
            Cause.DUPLICATE: Witness(Cause.DUPLICATE, 7, 0, 2, 2, 0),
            Cause.TRUNCATED: Witness(Cause.TRUNCATED, 7, 20, 4, None),
        },
    )
    oracle = on_spark.expected(frame(inputs), None, 10).orderBy("window").collect()
    assert [tuple(row) for row in oracle] == [
        (7, 0, 2, 0, [1, 2], []),
        (7, 10, 1, 0, [3], []),
        (7, 20, 1, 0, [4], []),
    ]


def test_what_cannot_be_judged_is_refused_with_a_word(frame):
    inputs = Batch.of(id=[1, 2, 1 << 40], time=[0, 5, 7], resource=[7, 7, 7])
    outputs = Batch.of(resource=[7], window=[0], count=[3], ids=[[2, 1, 1 << 40]])
    late = Batch.of(id=[1])

    def told(inputs=inputs, outputs=outputs, late=late, size_ms=10):
        with pytest.raises(UsageError) as error:
            on_spark.judge_frames(frame(inputs), frame(outputs), frame(late), size_ms)
        return str(error.value)

    assert "no column 'time'" in told(inputs=inputs.select("id", "resource"))
    assert "no column 'ids'" in told(outputs=outputs.select("resource", "window", "count"))
    assert "no column 'id'" in told(late=late.rename({"id": "event"}))
    assert "'ids' of the output is bigint" in told(
        outputs=outputs.with_columns(ids=outputs["count"])
    )
    assert "longer than nothing" in told(size_ms=0)
    case = np.zeros(3, np.int64)
    assert "output has no column 'case'" in told(inputs=inputs.with_columns(case=case))
    assert "resources" in told(inputs=inputs.with_columns(**Batch.of(resource=["a"] * 3).columns))
    twice = inputs.with_columns(id=np.array([1, 5, 1]))
    assert "the id 1 stands twice in the input" in told(inputs=twice)


def test_nulls_are_refused_with_the_column(spark):
    inputs = spark.createDataFrame([(1, None, 7)], "id long, time long, resource long")
    outputs = spark.createDataFrame(
        [(7, 0, 1, [1])], "resource long, window long, count long, ids array<long>"
    )
    with pytest.raises(UsageError, match="the input has nulls in 'time'"):
        on_spark.judge_frames(inputs, outputs, None, 10)
    empty = spark.createDataFrame(
        [(7, 0, 1, [None])], "resource long, window long, count long, ids array<long>"
    )
    with pytest.raises(UsageError, match="lists of ids in the output hold nulls"):
        on_spark.judge_frames(inputs.fillna(0, "time"), empty, None, 10)
    kept = spark._jsparkSession.sharedState().cacheManager()
    assert kept.isEmpty(), "the same files, once they are mended, are judged anew"


# The command, on Spark.


@pytest.fixture
def snapline(spark, monkeypatch, capsys, tmp_path):
    """`snapline validate` of recorded tables, in the session of these tests, which is not to be stopped."""
    settings = recorded_frames.settings_for(0)
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    monkeypatch.setattr(recorded_frames, "session_for", lambda recorded: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        given = ["--input", "in", "--output", "out", "--late", "late", "--window", "10s"]
        monkeypatch.setattr(sys, "argv", ["snapline", "validate", *given, *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    yield run
    for name, value in before.items():
        spark.conf.set(name, value)


def save(path, **columns):
    path.parent.mkdir(exist_ok=True)
    parquet.write_table(pa.table(columns), path)


def micros(*seconds):
    return pa.array(seconds, pa.timestamp("s")).cast(pa.timestamp("us"))


@pytest.fixture
def recorded(tmp_path):
    """Times in nanoseconds, without a zone; one output twice; names that a URL has to quote."""
    nanos = [-1, 5 * 10**9, 12 * 10**9, 25 * 10**9]
    times = pa.array(nanos, pa.timestamp("ns"))
    save(tmp_path / "in" / "a.parquet", id=[1, 2, 3, 4], time=times, resource=list("aaba"))
    save(tmp_path / "late" / "a.parquet", id=[4])
    out = {"resource": ["a", "b"], "window": micros(0, 10), "count": [1, 1]}
    save(tmp_path / "out" / "b \u00e9+%.parquet", **out, ids=[[2], [3]])
    out = {"resource": ["a", "a"], "window": micros(-10, 0), "count": [1, 1]}
    save(tmp_path / "out" / "c.parquet", **out, ids=[[1], [2]])
    return tmp_path


def test_the_command_says_the_same_wherever_it_judges(snapline, recorded):
    code, here, _ = snapline("--engine", "process", "--json")
    assert code == 1
    code, there, err = snapline("--engine", "spark", "--json")
    assert code == 1
    here, there = json.loads(here), json.loads(there)
    assert (here.pop("by"), there.pop("by")) == (
        "in process (9 events and claims)",
        "on Spark (9 events and claims)",
    )
    assert here == there
    assert here["because"].startswith("duplicate: The output at position 3 for resource 'a'")
    assert err.splitlines() == ["starting Spark ...", "judging on Spark ..."]


def test_so_it_does_of_columns_with_other_names_and_ids_that_are_strings(snapline, recorded):
    """Times in nanoseconds, one window that is not judged, an output in two parts, an unknown id."""
    nanos = [-1, 5 * 10**9, 6 * 10**9, 12 * 10**9, 25 * 10**9]
    times, ids = pa.array(nanos, pa.timestamp("ns")), ["\u00e9", "z", "y", "b", "a"]
    save(recorded / "in" / "a.parquet", uuid=ids, at=times, page=list("aaaba"))
    save(recorded / "late" / "a.parquet", uuid=["a", "b"])
    for file in (recorded / "out").iterdir():
        file.unlink()
    out = {"page": list("aaab"), "window": micros(-10, 0, 0, 10), "count": [1, 1, 1, 1]}
    save(recorded / "out" / "a.parquet", **out, **{"the.ids": [["\u00e9"], ["z"], ["y"], ["?"]]})
    names = ("--id", "uuid", "--time", "at", "--resource", "page", "--column", "ids=the.ids")
    found = {}
    for engine in ("process", "spark"):
        code, found[engine], _ = snapline(*names, "--engine", engine, "--ignore-open", "--json")
        assert code == 1
    here, there = (json.loads(found[engine]) for engine in ("process", "spark"))
    del here["by"], there["by"]
    assert here == there
    causes = {cause["cause"]: cause["sentence"] for cause in here["causes"]}
    assert [*causes] == ["invented", "split"]
    assert "is without GET event 'y', which is in another one at position 2" in causes["split"]
    assert here["unjudged"] == {"events": 1, "windows": 1}
    assert (here["late"], here["late_share"]) == (1, 0.25)


def scribble(file):
    whole = bytearray(file.read_bytes())
    whole[4:60] = b"\xff" * 56
    file.write_bytes(bytes(whole))


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda d: scribble(d / "in/a.parquet"), "in/a.parquet is damaged or cut short"),
        (lambda d: scribble(d / "out/c.parquet"), "out/c.parquet is damaged or cut short"),
        (
            lambda d: save(d / "in/a.parquet", id=[1, 1], time=[0, 0], resource=list("ab")),
            "the id 1 stands twice in the input",
        ),
        (
            lambda d: save(d / "in/a.parquet", id=[1, 2], time=[0, None], resource=list("ab")),
            "the input has nulls in 'time'",
        ),
        (
            lambda d: save(d / "in/a.parquet", id=[1, 2], time=[0, -(2**63)], resource=list("ab")),
            "a time that lies too far from 1970",
        ),
    ],
)
def test_bad_input_is_one_message_on_spark_too(snapline, recorded, spoil, word):
    spoil(recorded)
    code, out, err = snapline("--engine", "spark")
    assert (code, out) == (2, "")
    said = [line for line in err.splitlines() if not line.endswith("...")]
    assert len(said) == 1
    assert word in said[0]
