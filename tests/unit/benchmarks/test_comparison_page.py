"""A comparison keeps its figures in a file, divides the right ones, and shows what is missing."""

import json

import pytest

from benchmarks.common import kernels
from benchmarks.common.checks import Load
from benchmarks.compare import figures, sides, systems, tables, turns
from benchmarks.compare.figures import Figure, Record, Sitting
from benchmarks.flink import flink_peer
from benchmarks.native import native_peer
from snapline.kernels import forms
from snapline.workload.common.base import Params

SPARK, PLAIN = sides.title("aligned"), sides.title("aligned", sides.IN_PROCESSES)
SITTING = Sitting("now", "2026-11-16, 2 cores.", "abc", "python -m it", "Medians of 2.")


def figure(system, rate, turn=0, query="q12", sitting="now", **more):
    known = {"cpu_s": 2.0, "cpu_seconds": 4.0, "cpu_records": 1_000_000, "rss": 50_000_000}
    known |= {"slots": 2, "records": 1_000_000, "checkpoints": 4, "part": "throughput", **more}
    return Figure(sitting=sitting, system=system, query=query, turn=turn, rate=rate, **known)


def row(lines, name):
    (found,) = [line for line in lines if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in found.strip("|").split("|")][1:]


def test_what_was_recorded_is_read_again_and_more_is_added(tmp_path):
    path = tmp_path / "new" / "all.jsonl"
    first = figures.read(path)
    first.begin(SITTING)
    first.add(figure(SPARK, 4e6, pss=7, beside_cpu_s=0.5))
    first.note("no cargo")
    second = figures.read(path)
    second.add(figure(SPARK, 5e6, 1, p50_ms=1.5, neighbour="busy"))
    second.note("no cargo")
    assert second.notes == ["no cargo"]
    again = figures.read(path)
    assert again.sittings == [SITTING]
    assert [each.rate for each in again.figures] == [4e6, 5e6]
    assert again.figures == [*first.figures, second.figures[-1]]
    assert again.notes == ["no cargo"]


def test_a_record_without_a_file_writes_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = Record()
    record.add(figure(SPARK, 1e6))
    assert record.of("throughput") == record.figures
    assert not list(tmp_path.iterdir())


def test_snapline_on_spark_is_compared_with_the_better_flink_in_the_same_turn():
    rates = {SPARK: (4e6, 6e6), sides.REUSE: (1e6, 2e6), sides.COPY: (0.5e6, 1e6)}
    found = [figure(name, rate, n) for name, many in rates.items() for n, rate in enumerate(many)]
    lines = tables.ratio_table(found)
    assert row(lines, f"{SPARK}, to the better Flink") == ["**3.50** (3.00 to 4.00)"]


def test_runs_of_different_sittings_are_no_neighbours_and_medians_are_divided():
    found = [figure(SPARK, 4e6), figure(sides.SYNCED, 8e6, sitting="then")]
    lines = tables.ratio_table(found)
    assert row(lines, f"{SPARK}, to {sides.SYNCED}") == ["**0.50** (of medians)"]
    assert not [line for line in lines if "Flink" in line or "processes" in line]


def test_a_system_that_did_not_run_a_query_has_a_dash_and_queries_stand_in_order():
    found = [figure(SPARK, 4e6), figure(SPARK, 2e6, query="q3"), figure(PLAIN, 5e6)]
    head, _, *lines = tables.tables(Record(figures=found))[0]
    assert head == "| million rec/s | q3 | q12 |"
    assert row(lines, PLAIN) == ["-", "**5.00** (5.00 to 5.00)"]


def test_cpu_is_told_per_record_of_its_own_period_and_what_runs_beside_apart():
    own = [figure(SPARK, 1e6, cpu_s=3.0, cpu_records=2_000_000, beside_cpu_s=1.0)]
    assert tables.cpu_cell(own) == "1.500 + 0.500"
    assert tables.cpu_cell([figure(sides.REUSE, 1e6, cpu_s=3.0, cpu_records=500_000)]) == "6.000"


def test_memory_has_shares_where_there_are_several_processes():
    assert tables.memory_cell([figure(SPARK, 1, rss=190_000_000, pss=130_000_000)]) == "190 (130)"
    assert tables.memory_cell([figure(sides.LIMIT, 1, rss=20_000_000)]) == "20"


def test_latencies_have_a_row_for_each_rate_neighbour_and_number_of_slots():
    paced = {"part": "latency", "warm_cpu_s": 0.5, "warm_seconds": 5.0, "beside_cpu_s": 0.4}
    found = [
        figure(SPARK, 1_000, pace="1000", p50_ms=1.0, p99_ms=3.0, **paced),
        figure(SPARK, 1_000, 1, pace="1000", p50_ms=2.0, p99_ms=9.0, **paced),
        figure(SPARK, 2e6, pace="half", neighbour="busy", p50_ms=4.0, p99_ms=8.0, **paced),
        figure(SPARK, 1_000, pace="1000", p50_ms=7.0, p99_ms=8.0, **{**paced, "slots": 10}),
    ]
    _, _, *lines = tables.latency_table(found)
    first, second, third = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert first[:4] == ["1,000", "2", "quiet", SPARK]
    assert first[4:7] == ["**0.50** (0.50 to 0.50)", "**0.10** (0.10 to 0.10)", "0.10"]
    assert first[7:] == ["**1.5** (1.0 to 2.0)", "**6.0** (3.0 to 9.0)"]
    assert second[:3] == ["2,000,000 (half of capacity)", "2", "busy"]
    assert third[:2] == ["1,000", "10"]


def test_the_page_names_every_sitting_and_what_is_missing(tmp_path):
    record = Record(sittings=[SITTING], notes=["no Rust tool chain"])
    said = "\n".join(tables.opening(record))
    assert "2026-11-16, 2 cores. Commit abc. Medians of 2." in said
    assert "`python -m it`" in said
    assert "**Missing:** no Rust tool chain." in said


def test_without_cargo_there_are_no_anchors_and_one_line_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "cargo" in (native_peer.missing() or "")
    asked = systems.parser().parse_args(["--parts", "anchors"])
    assert not turns.compared_in_rates(sides.Systems("now", 1_000, "1g", None), asked)


def test_what_a_native_program_prints_is_read():
    said = {"records": 9, "count": 7, "checksum": 2**64 - 1, "rate": 3.5, "elapsed_s": 2.0}
    found = native_peer.read(json.dumps({**said, "cpu_s": 4.0, "rss": 100, "checkpoints": 2}))
    assert found.tally == (7, 2**64 - 1)
    assert (found.rate, found.cpu_s, found.rss, found.checkpoints) == (3.5, 4.0, 100, 2)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--parts", "speed"], "not speed"),
        (["--systems", "spark,jet"], "not jet"),
        (["--neighbour", "noisy"], "not noisy"),
        (["--protocols", "best"], "not best"),
        (["--rates", "1000,fast"], "not fast"),
        (["--page-from", "nowhere.jsonl"], "no file nowhere.jsonl"),
    ],
)
def test_what_nobody_knows_is_refused(words, complaint, capsys):
    with pytest.raises(SystemExit):
        systems.parsed(words)
    assert complaint in capsys.readouterr().err


def test_systems_that_run_with_all_input_at_once_follow_the_parts_and_the_choice():
    asked = systems.parsed(["--parts", "throughput", "--systems", "spark,flink"])
    compared = turns.compared_in_rates(sides.Systems("now", 1_000, "1g", None), asked)
    assert [system.name for system in compared] == [SPARK, sides.REUSE, sides.COPY]


def test_kernels_in_numpy_have_a_name_of_their_own_and_are_compared_like_others():
    asked = systems.parsed(["--parts", "throughput", "--systems", "spark", "--kernels", "numpy"])
    made = sides.Systems("now", 1_000, "1g", None, numpy=True)
    ((name,),) = [[system.name for system in turns.compared_in_rates(made, asked)]]
    assert name == "Snapline `aligned` in numpy, on Spark"
    found = [figure(name, 4e6), figure(SPARK, 5e6), figure(sides.REUSE, 2e6)]
    assert row(tables.ratio_table(found), f"{name}, to the better Flink")[0].startswith("**2.00**")


def test_anchors_alone_need_no_flink():
    assert not systems.uses_flink(systems.parsed(["--parts", "anchors"]))
    assert systems.uses_flink(systems.parsed(["--parts", "anchors,throughput"]))
    assert not systems.uses_flink(systems.parsed(["--systems", "spark"]))


def test_a_peer_is_told_its_whole_input():
    params = Params(7, 2, 900, 25_000, full=True, hot=10, hot_ms=700)
    said = dict(word.split("=") for word in flink_peer.words_of(Load("q8", params)))
    size = {"seed": "7", "partitions": "2", "records": "900", "duration_ms": "25000"}
    assert said == size | {
        "query": "q8",
        "disorder_ms": "60",
        "every_ms": "1000",
        "hot": "10",
        "hot_ms": "700",
        "window_ms": "10000",
    }


@pytest.mark.parametrize(("words", "said"), [([], "compiled"), (["--kernels", "numpy"], "numpy")])
def test_a_page_says_which_kernels_slots_have_used(words, said, monkeypatch):
    monkeypatch.setenv(forms.VARIABLE, "auto")
    monkeypatch.setattr(kernels, "find_spec", lambda name: name)
    assert kernels.choose(systems.parsed(words)) == f"kernels: {said}"
    assert forms.mode() == ("numpy" if words else "auto")
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert kernels.choose(systems.parsed([])) == "kernels: numpy"
