"""The judge on Spark at its size: many events of MST, and their output with a few planted faults.

    python benchmarks/hundred_million.py --events 100000000 --memory-mb 6144

Both tables are made by Spark jobs and stored as Parquet, the events as a pure function of their offset;
every ten million are the same again, with other ids and at a later time. One event of 10,007 is late.
Of the right outputs a few are dropped, doubled, moved to the next window, given another count, or made
to count an event twice; the judge has to find each of them, and nothing else. A million events are
judged in process as well: both judgements have to be the same in every field.

Each stage is a process of its own. While the judge runs, the memory of its processes (Python, Java and what
they start) is sampled ten times a second.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pages
import pyarrow as pa
from memory import PAGE
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from snapline.runtime.arrow import spark_schema, to_spark
from snapline.runtime.spark import batch_session
from snapline.systems.judge_recorded import judge_recorded
from snapline.systems.recorded import Recorded, open_recorded
from snapline.systems.recorded_frames import frames_of, session_for, settings_for
from snapline.validate.on_spark import judge_frames
from snapline.workload.base import Params
from snapline.workload.lineage import model

PARTITIONS = 4
EVENTS_PER_S = 100_000
PIECE = 1 << 18
BLOCK = 10_000_000
BLOCK_BITS = 44  # of ids: above partition and offset, below the bit of a POST
GAP_MS = 10_000  # between the times of two blocks: no window has events of both
LATE_EVERY = 10_007
SAMPLE_S = 0.1
TICKS = os.sysconf("SC_CLK_TCK")
KINDS = {"id": "int64", "time": "int64", "resource": "int64", "post": "bool"}

#: what is planted -> how many of the places 0, 1, 2, ... and the cause by which the judge has to call it
PLANTED = {
    "dropped": (3, "missing"),
    "doubled": (3, "duplicate"),
    "moved": (3, "wrong window"),
    "recounted": (2, "wrong value"),
    "counted twice": (2, "twice inside"),
}
AGREE_ON = 1_000_000


def params_of(events: int) -> Params:
    """An input of so many events."""
    duration_ms = max(20_000, events * 1_000 // EVENTS_PER_S)
    return Params(1, PARTITIONS, events // PARTITIONS, duration_ms, full=True)


# Making.


def make(spark: SparkSession, events: int, home: Path) -> None:
    """Write the tables: one block of events and its right output, and then as many blocks as it takes."""
    params = params_of(min(events, BLOCK))
    size_ms = model.shape_of(params).window_ms
    block = home / "block"
    _events(spark, params).write.parquet(str(block / "in"))
    inputs = spark.read.parquet(str(block / "in"))
    late = F.pmod(F.xxhash64("id"), F.lit(LATE_EVERY)) == 0
    window = F.col("time") - F.pmod("time", F.lit(size_ms))
    side = F.col("post")
    inputs.where(~late).groupBy("resource", window.alias("window")).agg(
        F.count_if(~side).alias("gets"),
        F.count_if(side).alias("posts"),
        F.collect_list(F.when(~side, F.col("id"))).alias("get_ids"),
        F.collect_list(F.when(side, F.col("id"))).alias("post_ids"),
    ).write.parquet(str(block / "out"))
    right = spark.read.parquet(str(block / "out"))
    tables = {"in": inputs, "late": inputs.where(late).select("id"), "out": right}
    for number in range(max(1, events // BLOCK)):
        for name, table in tables.items():
            if name == "out" and number == 0:
                table = _planted(table, size_ms)
            later = _later(table, number, params.duration_ms)
            later.write.mode("append").parquet(str(home / name))
    shutil.rmtree(block)


def _later(table: DataFrame, number: int, duration_ms: int) -> DataFrame:
    """The same rows with other ids, at a later time."""
    more, after = F.lit(number << BLOCK_BITS), F.lit(number * (duration_ms + GAP_MS))
    changed = {
        "id": F.col("id") + more,
        "time": F.col("time") + after,
        "window": F.col("window") + after,
        "get_ids": F.transform("get_ids", lambda id: id + more),
        "post_ids": F.transform("post_ids", lambda id: id + more),
    }
    return table.withColumns({n: column for n, column in changed.items() if n in table.columns})


def _events(spark: SparkSession, params: Params) -> DataFrame:
    sources = {"gets": model.gets_beside_posts(params), "posts": model.posts(params)}
    pieces = [
        (name, partition, start)
        for name, source in sources.items()
        for partition in range(source.partitions)
        for start in range(0, source.records, PIECE)
    ]

    def tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                name, partition, start = pieces[number]
                source = sources[name]
                stop = min(start + PIECE, source.records)
                yield to_spark(source.make(partition, start, stop), KINDS)

    tasks_of = spark.range(0, len(pieces), 1, max(2, len(pieces) // 8))
    return tasks_of.mapInArrow(tasks, spark_schema(KINDS))


def _planted(right: DataFrame, size_ms: int) -> DataFrame:
    """The right output but for some places: the first resources of window 3."""
    kinds = [kind for kind, (count, _) in PLANTED.items() for _ in range(count)]
    at = F.when(F.col("window") == 3 * size_ms, F.col("resource"))

    def spoiled(kind: str) -> Any:
        return F.coalesce(at.isin(*(n for n, k in enumerate(kinds) if k == kind)), F.lit(False))

    twice = F.concat("get_ids", F.slice("get_ids", 1, 1))
    changed = right.where(~spoiled("dropped")).withColumns(
        {
            "window": F.when(spoiled("moved"), F.col("window") + size_ms).otherwise(
                F.col("window")
            ),
            "gets": F.when(spoiled("recounted"), F.col("gets") + 1)
            .when(spoiled("counted twice"), F.col("gets") + 1)
            .otherwise(F.col("gets")),
            "get_ids": F.when(spoiled("counted twice"), twice).otherwise(F.col("get_ids")),
        }
    )
    return changed.unionByName(right.where(spoiled("doubled")))


# Judging.


@dataclass
class Watched:
    """The most memory that processes took together, and their CPU time, sampled by a thread."""

    root: int
    rss: int = 0
    java_rss: int = 0
    ended: bool = False
    cpu: dict[int, float] = field(default_factory=dict)  # by process, also of those that have ended

    def watch(self) -> None:
        while not self.ended:
            found = _tree(self.root)
            self.rss = max(self.rss, sum(rss for _, rss, _ in found.values()))
            java = (rss for name, rss, _ in found.values() if name == "java")
            self.java_rss = max(self.java_rss, sum(java))
            self.cpu.update({pid: seconds for pid, (*_, seconds) in found.items()})
            time.sleep(SAMPLE_S)

    @property
    def cpu_s(self) -> float:
        """The CPU time of all of them."""
        return sum(self.cpu.values())


def _tree(root: int) -> dict[int, tuple[str, int, float]]:
    """Name, RSS and CPU time of a process and of all below it."""
    found: dict[int, tuple[int, tuple[str, int, float]]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            before, _, after = (path / "stat").read_text().rpartition(")")
            rss = int((path / "statm").read_text().split()[1]) * PAGE
        except (OSError, IndexError):
            continue  # it has ended
        words = after.split()
        cpu = (int(words[11]) + int(words[12])) / TICKS
        found[int(path.name)] = int(words[1]), (before.partition("(")[2], rss, cpu)
    mine = {root}
    while more := {pid for pid, (parent, _) in found.items() if parent in mine} - mine:
        mine |= more
    return {pid: found[pid][1] for pid in mine if pid in found}


def judge(spark: SparkSession, recorded: Recorded, size_ms: int) -> dict[str, Any]:
    """Judge on Spark; what was found, and what it took."""
    start = time.monotonic()
    judged = judge_frames(*frames_of(recorded, spark), size_ms)
    return {
        "seconds": time.monotonic() - start,
        "inputs": judged.inputs,
        "outputs": judged.outputs,
        "late": judged.late,
        "lost": judged.lost,
        "repeated": judged.repeated,
        "reliable": judged.reliable,
        "causes": {cause.value: count for cause, count in judged.causes.items()},
        **_stages(spark),
    }


def _stages(spark: SparkSession) -> dict[str, int]:
    """What Spark wrote for shuffles and what it spilled, over all stages."""
    gateway, store = spark.sparkContext._gateway, spark.sparkContext._jsc.sc().statusStore()
    nothing, quantiles = gateway.jvm.java.util.ArrayList(), gateway.new_array(gateway.jvm.double, 0)
    stages = store.stageList(nothing, False, False, quantiles, nothing)
    found = [stages.apply(n) for n in range(stages.size())]
    return {
        "shuffled": sum(stage.shuffleWriteBytes() for stage in found),
        "spilled": sum(stage.diskBytesSpilled() for stage in found),
    }


# The stages, each in a process of its own.


def stage(name: str, events: int, memory_mb: int, home: Path) -> dict[str, Any]:
    """Do one stage here."""
    start = time.monotonic()
    if name == "make":
        settings = settings_for(2 * events)
        settings["spark.sql.shuffle.partitions"] = str(max(4, events // 1_000_000))
        spark = batch_session(memory_mb, settings)
        make(spark, events, home)
        spark.stop()
        return {"seconds": time.monotonic() - start}
    recorded = open_recorded(home / "in", home / "out", home / "late")
    size_ms = model.shape_of(params_of(events)).window_ms
    if name == "agree":
        one, other = (judge_recorded(recorded, size_ms, engine) for engine in ("process", "spark"))
        return {"same": one.judged == other.judged and one.sentences == other.sentences}
    spark = session_for(recorded, memory_mb)
    found = judge(spark, recorded, size_ms)
    spark.stop()
    return found | {"values": recorded.values}


def in_process_of_its_own(
    name: str, events: int, memory_mb: int, home: Path
) -> tuple[dict[str, Any], Watched]:
    """Do one stage in a new process, and watch its memory."""
    command = [sys.executable, __file__, "--stage", name, "--events", str(events)]
    command += ["--memory-mb", str(memory_mb), "--home", str(home)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watched = Watched(process.pid)
    watcher = threading.Thread(target=watched.watch)
    watcher.start()
    try:
        answer, _ = process.communicate()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        watched.ended = True
        watcher.join()
    if process.returncode:
        sys.exit(f"stage {name} has failed")
    return json.loads(answer.splitlines()[-1]), watched


def _bytes(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*.parquet"))


def main() -> None:
    """Make, judge, tell."""
    parser = pages.parser_of(__doc__, "hundred_million.md")
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--memory-mb", type=int, default=6_144, help="of Java (6144)")
    parser.add_argument(
        "--home", type=Path, help="where the tables go; else where temporary files go"
    )
    parser.add_argument("--stage", choices=("make", "judge", "agree"), help=pages.argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        found = stage(options.stage, options.events, options.memory_mb, options.home)
        print(json.dumps(found), flush=True)
        return
    session = pages.Session()
    home = Path(tempfile.mkdtemp(prefix="snapline-judge-", dir=options.home))
    try:
        report(session, options.events, options.memory_mb, home, options.to)
    finally:
        shutil.rmtree(home)


def report(session: pages.Session, events: int, memory_mb: int, home: Path, to: Path) -> None:
    """All stages, and the page."""
    small, large = home / "small", home / "large"
    large.mkdir()
    session.say(f"making {events:,} events")
    made, _ = in_process_of_its_own("make", events, memory_mb, large)
    session.say(f"made in {made['seconds']:.0f} s; judging them")
    found, watched = in_process_of_its_own("judge", events, memory_mb, large)
    session.say(f"judged in {found['seconds']:.0f} s, {watched.cpu_s:.0f} s of CPU time: {found}")
    small.mkdir()
    in_process_of_its_own("make", AGREE_ON, memory_mb, small)
    session.say(f"judging {AGREE_ON:,} events in both ways")
    agreed, _ = in_process_of_its_own("agree", AGREE_ON, memory_mb, small)
    wanted = {cause: count for count, cause in PLANTED.values()}
    rows = [
        ("events, outputs, late events", _numbers(found, "inputs", "outputs", "late")),
        ("ids held against ids", f"{found['values']:,}"),
        ("Parquet: input, output", f"{_mb(_bytes(large / 'in'))}, {_mb(_bytes(large / 'out'))}"),
        ("made in", f"{made['seconds']:.0f} s"),
        ("judged in", f"**{found['seconds']:.0f} s**, {_rate(found):.2f} million events/s"),
        ("CPU time of all its processes", f"{watched.cpu_s:.0f} s, start included"),
        ("memory given to Java", _mb(memory_mb << 20)),
        ("peak RSS: all processes, Java alone", f"**{_mb(watched.rss)}**, {_mb(watched.java_rss)}"),
        ("shuffled, spilled to disk", f"{_mb(found['shuffled'])}, {_mb(found['spilled'])}"),
        ("lost, repeated, reliable events", _numbers(found, "lost", "repeated", "reliable")),
        ("planted faults found, and nothing else", _yes(found["causes"] == wanted)),
        (f"in process the same for {AGREE_ON:,} events, field by field", _yes(agreed["same"])),
    ]
    causes = [(cause, count, found["causes"].get(cause, 0)) for cause, count in wanted.items()]
    session.write(
        to,
        "A hundred million events, judged"
        if events == 100_000_000
        else f"{events:,} events, judged",
        (
            "MST at 100,000 events per second, windows of 2 s, 1,000 resources; local Spark on all cores.",
            "Time and memory are those of the judge alone, its session's start left out of the time.",
        ),
        (
            pages.table(("figure", ""), rows),
            pages.table(("planted", "outputs", "found"), causes),
        ),
    )
    if found["causes"] != wanted or not agreed["same"]:
        sys.exit(1)


def _numbers(found: dict[str, Any], *names: str) -> str:
    return ", ".join(f"{found[name]:,}" for name in names)


def _rate(found: dict[str, Any]) -> float:
    return float(found["inputs"] / found["seconds"] / 1e6)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _yes(right: bool) -> str:
    return "yes" if right else "**NO**"


if __name__ == "__main__":
    pages.call(main)
