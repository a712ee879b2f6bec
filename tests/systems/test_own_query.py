"""`sl.check_stream` with real queries, really killed: who survives, who is caught, what nobody can say."""

import threading

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import snapline as sl
from snapline.errors import UsageError
from snapline.systems.harness.processes import lives

pytestmark = pytest.mark.spark

KILL = "kill driver on=round"


@pytest.fixture(scope="module")
def readings(spark):
    """Two hundred rows, one every two seconds."""
    time = F.timestamp_seconds(F.col("id") * 2 + 1_700_000_000)
    return spark.range(200).select("id", (F.col("id") % 7).alias("sensor"), time.alias("time"))


def halves(df):
    return df.where("id % 2 = 0").selectExpr("id", "id / 2 as half")


def per_window(df):
    windows = df.withWatermark("time", "10 seconds").groupBy(F.window("time", "20 seconds"))
    return windows.agg(F.count("*").alias("n"), F.avg("id").alias("mean"))


def per_sensor(df):
    return df.groupBy("sensor").agg(F.count("*").alias("n"))


def nobody_left(result):
    return not any(lives(pid) for event in result.events for pid in getattr(event.what, "pids", ()))


def test_windows_come_out_once_although_the_query_is_killed_in_a_micro_batch(
    check_stream, readings
):
    result = check_stream(per_window, readings, faults=KILL, batches=4)
    assert (result.kills, result.restarts, result.late) == (1, 1, 0)
    assert result.batches >= 4
    assert [strike.struck for strike in result.faults] == [True]
    assert "windows still open at the end" in result.verdict.because
    assert nobody_left(result)


def test_a_sink_that_does_not_look_at_the_batch_id_is_caught(readings, tmp_path):
    out = str(tmp_path / "out")

    def append(batch, number):
        batch.write.mode("append").parquet(out)

    result = sl.check_stream(
        halves,
        readings,
        write=append,
        read=lambda spark: spark.read.parquet(out),
        faults=KILL,
        batches=4,
    )
    assert (result.kept, bool(result)) == ("no", False)
    assert result.verdict.guarantees == {
        "at-most-once": "no",
        "at-least-once": "yes",
        "exactly-once": "no",
    }
    assert {problem.kind for problem in result.verdict.problems} == {"duplicate"}
    assert "it came out 2 times, and the batch has it 1 time" in str(result)
    assert result.rows > 100
    assert nobody_left(result)


@pytest.mark.slow
def test_unless_told_otherwise_a_query_is_killed_in_two_micro_batches(readings):
    result = sl.check_stream(halves, readings)
    assert result, str(result)
    assert (result.kills, result.restarts, result.batches, result.rows) == (2, 2, 8, 100)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "key"), [("complete", ()), ("update", "sensor")])
def test_totals_that_are_put_out_again_and_again_are_right_in_the_end(
    check_stream, readings, mode, key
):
    result = check_stream(per_sensor, readings, mode=mode, key=key, faults=KILL, batches=4)
    assert (result.rows, result.kills) == (7, 1)


@pytest.mark.slow
def test_late_rows_make_it_impossible_to_say(readings):
    backwards = readings.orderBy(F.desc("time"))
    result = sl.check_stream(per_window, backwards, faults=KILL, batches=4)
    assert result.kept == "unknown"
    assert result.late > 0
    assert result.verdict.because.startswith(f"Spark dropped {result.late} rows as late")


@pytest.mark.slow
def test_windows_without_their_column_may_be_held_back(readings):
    result = sl.check_stream(
        lambda df: per_window(df).select("n", "mean"), readings, faults=KILL, batches=4
    )
    assert result.kept == "unknown"
    assert "keep the column window in the output" in result.verdict.because


@pytest.mark.slow
def test_a_sink_that_cannot_be_run_again_does_not_survive(readings, tmp_path):
    def write_new(batch, number):
        batch.write.mode("error").parquet(f"{tmp_path}/out/{number}")

    result = sl.check_stream(
        halves, readings, write=write_new, read=lambda spark: spark.range(0), faults=KILL, batches=4
    )
    assert result.kept == "no"
    assert "was killed and did not come to its end" in result.verdict.because
    assert "already exists" in result.verdict.because


@pytest.mark.slow
def test_a_query_that_fails_by_itself_is_bad_input(readings):
    def fail(batch, number):
        raise KeyError("colour")

    with pytest.raises(UsageError, match=r"although nothing was done to it: .*colour"):
        sl.check_stream(halves, readings, write=fail, read=lambda spark: spark.range(0), faults=[])
    with pytest.raises(UsageError, match=r"build cannot run as a stream: .*watermark"):
        sl.check_stream(per_sensor, readings)


@pytest.mark.slow
def test_a_kill_at_a_time_and_a_pause_strike_while_input_comes(check_stream, readings):
    faults = ["pause driver at=1s for=2s", "kill driver at=40s", KILL]
    result = check_stream(per_window, readings, faults=faults)
    assert (result.kills, all(strike.struck for strike in result.faults)) == (2, True)


# Bad input: one sentence, and no process is started.

lock = threading.Lock()


def with_a_lock(df):
    return df.where(F.lit(lock.locked()))


REFUSED = [
    (
        {"build": lambda df: df.select("colour")},
        "build fails on a batch: AnalysisException: .*colour",
    ),
    ({"build": lambda df: 3}, "build must return a DataFrame, not int"),
    ({"build": lambda df: df.select("id", "id")}, "build returns two columns 'id'"),
    ({"build": with_a_lock}, "cannot be sent to another process .*lock"),
    (
        {"faults": "kill slot=1 at=2s"},
        "a query cannot take 'kill slot=1 at=2s': its driver does all",
    ),
    ({"faults": "kill driver on=recovery"}, "a query cannot take 'kill driver on=recovery'"),
    ({"faults": "kill it"}, "kill it"),
    ({"mode": "update"}, "mode='update' needs key"),
    ({"mode": "update", "key": ["colour"]}, "key: build returns no column 'colour'"),
    ({"key": ["id"]}, "key is for mode='update'"),
    ({"write": print}, "write and read belong together"),
]


@pytest.fixture
def nothing_starts(monkeypatch):
    from snapline.systems.own_query.adapter import OwnQuery

    monkeypatch.setattr(OwnQuery, "start", lambda self: pytest.fail("the query was started"))


@pytest.mark.parametrize(("wrong", "said"), REFUSED)
@pytest.mark.usefixtures("nothing_starts")
def test_what_cannot_be_checked_is_refused(readings, tmp_path, wrong, said):
    given = {"build": halves, "df": readings, "directory": tmp_path / "check", **wrong}
    with pytest.raises(UsageError, match=said) as refused:
        sl.check_stream(**given)
    assert len(str(refused.value)) < 500


@pytest.mark.usefixtures("nothing_starts")
def test_an_input_that_is_no_batch_with_rows_is_refused(spark, readings, tmp_path):
    with pytest.raises(UsageError, match="df is empty"):
        sl.check_stream(halves, readings.where("id < 0"))
    stream = spark.readStream.schema(StructType()).parquet(str(tmp_path))
    with pytest.raises(UsageError, match="df is a stream: give the rows as a batch"):
        sl.check_stream(halves, stream)
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError, match=r"^directory: .* is there and not empty"):
        sl.check_stream(halves, readings, directory=tmp_path)


@pytest.mark.parametrize("chance", [F.rand, F.current_timestamp])
@pytest.mark.usefixtures("nothing_starts")
def test_a_query_with_dice_or_a_clock_has_no_batch_to_be_compared_with(readings, chance):
    result = sl.check_stream(lambda df: df.select(chance().alias("chance")), readings)
    assert result.kept == "unknown"
    assert result.verdict.because.startswith("build gives other rows each time for the same batch")
