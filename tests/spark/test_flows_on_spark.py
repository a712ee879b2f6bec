"""Dataflows of one's own on a real Spark: of a program or a file, broken, judged, and read."""

import base64
import textwrap
from pathlib import Path

import numpy as np
import pytest
from run_helpers import assert_dead, assert_usable_and_empty

import snapline as sl
from snapline.journal.happenings import LineDecided

pytestmark = pytest.mark.spark


class Highest(sl.Operator):
    """The highest price so far of every bidder, each time that it rises: an operator with own state."""

    def __init__(self):
        self.highest = {}

    def process(self, port, batch):
        rows = []
        for bidder, price in zip(batch["bidder"].tolist(), batch["price"].tolist(), strict=True):
            if price > self.highest.get(bidder, 0):
                self.highest[bidder] = price
                rows.append((bidder, price))
        if not rows:
            return ()
        bidders, prices = zip(*rows, strict=True)
        return (("out", sl.Batch.of(bidder=list(bidders), highest=list(prices))),)

    def capture(self, *, full):
        keys = np.array(list(self.highest), np.int64)
        values = np.array(list(self.highest.values()), np.int64)
        return sl.Capture(True, {"highest": sl.Batch({"bidder": keys, "price": values})})

    def restore(self, captures):
        state = captures[-1].parts["highest"]
        self.highest = dict(zip(state["bidder"].tolist(), state["price"].tolist(), strict=True))


def tag(record):
    """A function of one record, as people write it first."""
    return {**record, "even": record["price"] % 2 == 0}


def bids_per_bidder():
    flow = sl.Dataflow("bids per bidder")
    bids = flow.source(sl.nexmark.bids(rate=2_000, seed=1, bidders=50))
    bids.key_by("bidder").tumbling("1s").running_count().sink("counts")
    return flow


def test_a_flow_of_a_program_survives_a_kill_and_is_judged_by_its_reference(spark, tmp_path):
    run = sl.run(
        bids_per_bidder(),
        spark,
        protocol="uncoordinated",
        slots=2,
        interval="400ms",
        duration="4s",
        faults=["kill slot=1 at=2s"],
        spares=1,
        reference=True,
        runs=tmp_path,
    )
    assert run.verdict.kept == "yes", run.verdict
    assert run.metrics["kills"] == 1
    assert_dead(run.metrics["killed_pids"])
    assert_usable_and_empty(spark)
    output = run.output()
    assert output.count() == run.rows["counts"] == len(run.batch()) == 8_000
    again = sl.open_run("last", spark, tmp_path)
    assert again.name == run.name
    assert again.verdict == run.verdict
    assert sorted(map(tuple, again.output("counts").collect())) == sorted(
        map(tuple, output.collect())
    )


def test_operators_and_functions_of_ones_own_keep_their_promise(spark, tmp_path):
    flow = sl.Dataflow("highest")
    bids = flow.source(sl.nexmark.bids(rate=1_000, seed=3, bidders=10), name="bids")
    tagged = bids.map_records(tag).filter(lambda batch: batch["even"])
    tagged.key_by("bidder").apply(Highest, name="rises").sink("highest")
    run = sl.run(
        flow,
        spark,
        slots=1,
        interval="300ms",
        duration="3s",
        faults="kill slot=0 at=1500ms",
        silence="60s",
        reference=True,
        runs=tmp_path,
    )
    assert run.verdict.kept == "yes", run.verdict
    assert run.metrics["lost"] == 1


def test_a_flow_that_always_raises_is_told_with_its_line_and_can_be_resumed(spark, tmp_path, capfd):
    flow = sl.Dataflow("broken")
    bids = flow.source(sl.nexmark.bids(rate=1_000, seed=3, bidders=10), name="bids")
    bids.map_records(lambda record: {"x": record["prize"]}, name="tagged").sink("prices")
    with pytest.raises(sl.FlowFailed, match="operator 'tagged' failed: KeyError: 'prize'") as told:
        sl.run(flow, spark, slots=2, interval="300ms", duration="3s", runs=tmp_path)
    assert (told.value.operator, told.value.cause) == ("tagged", "KeyError: 'prize'")
    assert f"{__file__}, line " in told.value.where
    assert "of partition" in told.value.where
    assert "Traceback" not in str(told.value) + capfd.readouterr().err
    assert_usable_and_empty(spark)
    (directory,) = tmp_path.iterdir()
    assert not (directory / "result.json").exists()


def test_without_a_reference_nobody_knows_and_the_message_says_how_to_know(spark, tmp_path):
    words = [{"word": word} for word in ["to", "be", "or", "not", "to", "be"] * 20]
    flow = sl.Dataflow("words")
    flow.source(sl.records(words, rate=200)).key_by("word").count().sink("counts")
    run = sl.run(flow, spark, slots=1, duration="2s", interval="500ms", runs=tmp_path)
    assert run.verdict.kept == "unknown"
    assert "reference" in run.verdict.because
    counts = {(row["word"], row["count"]) for row in run.output().collect()}
    assert ("to", 40) in counts
    assert ("or", 20) in counts


def test_a_flow_in_a_file_runs_with_what_lies_beside_it(spark, tmp_path, monkeypatch):
    (tmp_path / "my_flow.py").write_text(
        textwrap.dedent(
            """
            import snapline as sl

            def double(batch):
                return batch.with_columns(twice=batch["number"] * 2)

            def flow():
                flow = sl.Dataflow("doubled")
                numbers = flow.source(sl.generated(lambda n: {"number": n}, rate=500))
                numbers.map(double).sink("doubled")
                return flow
            """
        )
    )
    monkeypatch.chdir(tmp_path)
    run = sl.run("my_flow.py:flow", spark, slots=2, duration="1s", interval="300ms", reference=True)
    assert run.verdict.kept == "yes", run.verdict
    batch = run.batch()
    assert sorted(batch["number"].tolist()) == list(range(500))
    assert (batch["twice"] == 2 * batch["number"]).all()
    assert run.directory.path.parent == tmp_path / "runs"


def test_none_on_a_flow_of_ones_own_is_broken_and_a_lost_row_is_named(spark, tmp_path):
    run = sl.run(
        bids_per_bidder(),
        spark,
        protocol="none",
        slots=2,
        duration="3s",
        faults="kill slot=1 at=1500ms",
        spares=1,
        reference=True,
        runs=tmp_path,
    )
    assert run.verdict.kept == "no"
    assert "counts(bidder=" in run.verdict.because


class Looking:
    """A watcher that looks through files while the run goes on."""

    def __init__(self, *places):
        self.places = places
        self.files = self.largest = 0
        self.found = []

    def event(self, entry):
        if isinstance(entry.what, LineDecided):
            for path in (path for place in self.places for path in Path(place).rglob("*")):
                if path.is_file():
                    data = path.read_bytes()
                    self.files += 1
                    self.largest = max(self.largest, len(data))
                    self.found += [path for form in FORMS if form in data]

    def second(self, second):
        pass


SECRET = bytes(range(100, 132))
FORMS = (SECRET, SECRET.hex().encode(), base64.b64encode(SECRET), repr(SECRET)[2:-1].encode())


def test_the_secret_is_in_no_file_however_large_the_flow(spark, tmp_path, monkeypatch):
    """Spark writes code of more than 1 MB, in which the secret once was, to a file."""
    monkeypatch.setattr("snapline.runtime.driver.driver.new_secret", lambda: SECRET)
    heavy = np.random.default_rng(1).bytes(1_500_000)
    flow = sl.Dataflow("heavy")
    numbers = flow.source(sl.generated(lambda n: {"number": n}, rate=200))
    numbers.filter(lambda batch: batch["number"] < len(heavy)).sink("out")
    looking = Looking(spark.conf.get("spark.local.dir"), spark.sparkContext._temp_dir, tmp_path)
    run = sl.run(
        *(flow, spark),
        slots=1,
        duration="1s",
        interval="300ms",
        runs=tmp_path / "runs",
        watcher=looking,
    )
    assert run.rows == {"out": 200}
    assert looking.found == []
    assert looking.largest > len(heavy), "the code that was too large for memory has been seen"
