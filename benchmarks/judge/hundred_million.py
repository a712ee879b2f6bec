"""The judge on Spark at its size: many events of MST, and their output with a few planted faults.

    python -m benchmarks.judge.hundred_million --events 100000000 --memory-mb 6144

Both tables are made by Spark jobs (planted.py). Of the right outputs a few are dropped, doubled, moved to
the next window, given another count, or made to count an event twice; the judge has to find each of them,
and nothing else. A million events are judged in process as well: both judgements have to be the same in
every field.

Each stage is a process of its own. While the judge runs, the memory of its processes (Python, Java and what
they start) is sampled ten times a second.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.common import pages
from benchmarks.judge.planted import PLANTED, make, params_of
from benchmarks.judge.watched import Watched
from snapline.spark.slot_jobs import batch_session
from snapline.systems.recorded.frames import frames_of, session_for, settings_for
from snapline.systems.recorded.judge import WindowSpan, judge_recorded
from snapline.systems.recorded.tables import RecordedTables, open_recorded
from snapline.validate.on_spark.judge import judge_frames
from snapline.workload.lineage import model

PROGRAM = "benchmarks.judge.hundred_million"
AGREE_ON = 1_000_000


def judge(spark: SparkSession, recorded: RecordedTables, size_ms: int) -> dict[str, Any]:
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
    gateway: Any = spark.sparkContext._gateway
    store = spark.sparkContext._jsc.sc().statusStore()
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
        one, other = (
            judge_recorded(recorded, WindowSpan(size_ms), engine) for engine in ("process", "spark")
        )
        return {"same": one.judged == other.judged and one.sentences == other.sentences}
    spark = session_for(recorded, memory_mb)
    found = judge(spark, recorded, size_ms)
    spark.stop()
    return found | {"values": recorded.values}


def in_process_of_its_own(
    name: str, events: int, memory_mb: int, home: Path
) -> tuple[dict[str, Any], Watched]:
    """Do one stage in a new process, and watch its memory."""
    command = [sys.executable, "-m", PROGRAM, "--stage", name, "--events", str(events)]
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
    parser.add_argument("--stage", choices=("make", "judge", "agree"), help=argparse.SUPPRESS)
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
