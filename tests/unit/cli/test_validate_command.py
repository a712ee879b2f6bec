"""`snapline validate` of recorded Parquet, in process: the verdict, its forms, every kind of bad input."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from pyarrow import parquet

from snapline.cli.app import main
from snapline.judge.report_files import reliability
from snapline.systems.recorded import frames as recorded_frames
from snapline.systems.recorded import judge as judge_recorded
from snapline.validate.causes import BREAKS, Cause
from snapline.validate.judged import Judged

IDS = pa.list_(pa.int64())
NO_OUTPUT = {
    "resource": pa.array([], pa.string()),
    "window": pa.array([], pa.int64()),
    "count": pa.array([], pa.int64()),
    "ids": pa.array([], IDS),
}


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", "validate", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


def save(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)


@pytest.fixture
def recorded(tmp_path):
    """Four events, their right output in two files, and no late ones."""
    save(tmp_path / "in" / "a.parquet", id=[1, 2, 3, 4], time=[0, 5, 12, 25], resource=list("aaba"))
    save(
        tmp_path / "out" / "a.parquet",
        resource=["a", "b"],
        window=[0, 10],
        count=[2, 1],
        ids=[[2, 1], [3]],
    )
    save(tmp_path / "out" / "b.parquet", resource=["a"], window=[20], count=[1], ids=[[4]])
    return tmp_path


WHAT = ("--input", "in", "--output", "out", "--window", "10ms")


def test_a_right_output_is_kept(snapline, recorded):
    code, out, err = snapline(*WHAT)
    assert code == 0
    assert "judged in process (8 events and claims; Spark judges more than 20,000,000)" in out
    assert "reliability 100 % of 4 events: 0 lost, 0 repeated; 3 outputs, 0 late (0 %)" in out
    assert "kept: 4 of 4 events were counted once in 3 outputs, or late (0)" in out
    assert err.splitlines() == ["reading ...", "judging ..."]


def test_a_broken_one_is_shown_with_its_causes_and_a_witness(snapline, recorded):
    save(recorded / "out" / "b.parquet", resource=["a"], window=[0], count=[1], ids=[[2]])
    code, out, _ = snapline(*WHAT, "--junit", "r.xml")
    assert code == 1
    words = [line.split() for line in out.splitlines()]
    assert ["at-most-once", "no"] in words
    assert ["at-least-once", "no"] in words
    assert ["exactly-once", "no", "decides"] in words
    assert "reliability 50.0000 % of 4 events: 1 lost, 1 repeated; 3 outputs, 0 late" in out
    assert "duplicate 1" in out
    assert "truncated 1" in out
    assert (
        "broken: duplicate: The output at position 2 for resource 'a', window 0 s to 0.01 s" in out
    )
    suite = ElementTree.parse(recorded / "r.xml").getroot().find("testsuite")
    assert suite.attrib["failures"] == "1"
    (failure,) = suite.findall("testcase/failure")
    assert "counted at position 0 already" in failure.attrib["message"]
    assert [case.attrib["name"] for case in suite.iter("testcase")] == [
        "at-most-once",
        "at-least-once",
        "exactly-once",
    ]


def test_programs_get_one_document(snapline, recorded):
    save(recorded / "out" / "b.parquet", resource=["a"], window=[0], count=[1], ids=[[2]])
    code, out, _ = snapline(*WHAT, "--json")
    document = json.loads(out)
    assert (code, document["kept"], document["promise"]) == (1, "no", "exactly-once")
    assert document["guarantees"]["at-least-once"] == "no"
    assert {name: document[name] for name in ("inputs", "lost", "repeated", "reliable")} == {
        "inputs": 4,
        "lost": 1,
        "repeated": 1,
        "reliable": 2,
    }
    duplicate, truncated = document["causes"]
    assert duplicate["cause"] == "duplicate"
    assert (duplicate["count"], duplicate["id"], duplicate["other"]) == (1, 2, 0)
    assert truncated["sentence"].startswith("GET event 4 is lost")


def test_the_promise_decides(snapline, recorded):
    save(recorded / "out" / "c.parquet", resource=["a"], window=[20], count=[1], ids=[[4]])
    assert snapline(*WHAT)[0] == 1
    assert snapline(*WHAT, "--promise", "at-most-once")[0] == 1
    code, out, _ = snapline(*WHAT, "--promise", "at-least-once", "--junit", "r.xml")
    assert code == 0
    assert "kept: 3 of 4 events were counted once" in out
    suite = ElementTree.parse(recorded / "r.xml").getroot().find("testsuite")
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("0", "2")
    code, _, err = snapline(*WHAT, "--promise", "nothing")
    assert (code, "--promise takes one of at-most-once" in err) == (2, True)


def test_late_events_are_not_lost(snapline, recorded):
    (recorded / "out" / "b.parquet").unlink()
    assert snapline(*WHAT)[0] == 1
    save(recorded / "late" / "x.parquet", id=[4])
    code, out, _ = snapline(*WHAT, "--late", "late")
    assert (code, "2 outputs, 1 late" in out) == (0, True)


def test_the_share_that_may_be_late_is_the_users(snapline, recorded):
    (recorded / "out" / "b.parquet").unlink()
    save(recorded / "late" / "x.parquet", id=[4])
    late = (*WHAT, "--late", "late", "--junit", "r.xml")
    code, out, _ = snapline(*late, "--max-late", "25%")
    assert (code, "2 outputs, 1 late (25 %)" in out) == (0, True)
    code, out, _ = snapline(*late, "--max-late", "0.2")
    assert (code, "broken: 1 of 4 events is late, 25 %: at most 20 % may be" in out) == (1, True)
    suite = ElementTree.parse(recorded / "r.xml").getroot().find("testsuite")
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert (properties["late_share"], suite.attrib["failures"]) == ("0.25", "1")


def test_where_everything_is_late_nobody_knows(snapline, recorded):
    [file.unlink() for file in (recorded / "out").iterdir()]
    save(recorded / "out" / "a.parquet", **NO_OUTPUT)
    save(recorded / "late" / "x.parquet", id=[1, 2, 3, 4])
    code, out, _ = snapline(*WHAT, "--late", "late")
    assert (code, "4 late (100 %)" in out) == (3, True)
    assert "unknown: no output counts an event in time, so nothing was compared" in out


def test_a_job_that_goes_on_is_judged_up_to_a_time(snapline, recorded):
    (recorded / "out" / "b.parquet").unlink()
    assert snapline(*WHAT)[0] == 1  # the window from 20 ms on is open
    code, out, _ = snapline(*WHAT, "--until", "20")
    assert code == 0
    assert "not judged: 1 event in 1 window that ends later" in out
    code, out, _ = snapline(*WHAT, "--until", "1970-01-01T01:00:00.020+01:00", "--json")
    assert json.loads(out)["unjudged"] == {"events": 1, "windows": 1}
    assert snapline(*WHAT, "--until", "30")[0] == 1
    assert snapline(*WHAT, "--until", "9")[0] == 3  # nothing is compared


def test_windows_that_the_input_has_not_closed_are_left_out(snapline, recorded):
    (recorded / "out" / "b.parquet").unlink()
    code, out, _ = snapline(
        *WHAT, "--ignore-open"
    )  # 25 is the latest time: 20 is closed, 30 is not
    assert (code, "not judged: 1 event in 1 window that ends later" in out) == (0, True)
    (recorded / "out" / "a.parquet").unlink()
    rows = {"resource": ["a"], "window": [0], "count": [2], "ids": [[2, 1]]}
    save(recorded / "out" / "a.parquet", **rows)
    assert snapline(*WHAT, "--ignore-open")[0] == 1  # 3 is lost
    assert snapline(*WHAT, "--ignore-open", "--lateness", "6ms")[0] == 0  # or still open
    assert snapline(*WHAT, "--ignore-open", "--until", "10")[0] == 0


def test_a_watermark_of_the_users_tells_what_was_late(snapline, recorded):
    change(recorded / "in" / "a.parquet", id=[1, 2, 3, 4])
    table = parquet.read_table(recorded / "in" / "a.parquet")
    table = table.append_column("seen", pa.array([0, 0, 30, 30]))
    parquet.write_table(table, recorded / "in" / "a.parquet")
    save(recorded / "out" / "a.parquet", resource=["a"], window=[0], count=[2], ids=[[2, 1]])
    (recorded / "out" / "b.parquet").unlink()
    save(recorded / "late" / "a.parquet", id=[3, 4])
    late = (*WHAT, "--late", "late")
    assert snapline(*late)[0] == 0  # nobody knows better
    assert snapline(*late, "--column", "watermark=seen")[0] == 0
    code, out, _ = snapline(*late, "--column", "watermark=seen", "--lateness", "1ms")
    assert (code, "not late 1" in out) == (1, True)
    assert "GET event 4 of resource 'a', window 0.02 s to 0.03 s is in the late output" in out


@pytest.fixture
def foreign(recorded):
    """The same with names of somebody else, and with strings as ids, whose order is not that of 1 to 4."""
    for file in (recorded / "out").iterdir():
        file.unlink()
    ids = ["\u00e9-1", "z-2", "b-3", "a-4"]
    save(recorded / "in/a.parquet", uuid=ids, ts=[0, 5, 12, 25], page=list("aaba"), id=[9] * 4)
    out = {"page": ["a", "b"], "from ms": [0, 10], "n": [2, 1]}
    save(recorded / "out" / "a.parquet", **out, **{"the.ids": [[ids[1], ids[0]], [ids[2]]]})
    save(recorded / "late" / "a.parquet", key=[ids[3]])
    return recorded


NAMES = ("--id", "uuid", "--time", "ts", "--resource", "page", "--column", "output.window=from ms")
NAMES += ("--column", "count=n", "--column", "ids=the.ids", "--column", "late.id=key")
NAMES += ("--late", "late")


def test_columns_may_have_other_names_and_ids_be_strings(snapline, foreign):
    code, out, _ = snapline(*WHAT, *NAMES)
    assert (code, "4 of 4 events were counted once in 2 outputs, or late (1)" in out) == (0, True)
    out = {"page": list("aab"), "from ms": [0, 0, 10], "n": [2, 1, 2]}
    lists = [["z-2", "z-2"], ["z-2"], ["b-3", "who?"]]
    save(foreign / "out" / "a.parquet", **out, **{"the.ids": lists})
    code, out, _ = snapline(*WHAT, *NAMES, "--json")
    causes = {cause["cause"]: cause for cause in json.loads(out)["causes"]}
    assert (code, [*causes]) == (1, ["invented", "twice inside", "duplicate", "incomplete"])
    assert causes["invented"]["id"] == "who?"
    assert "counts event 'who?', which is no input" in causes["invented"]["sentence"]
    assert causes["incomplete"]["sentence"].startswith(
        "GET event '\u00e9-1' is lost: the output at"
    )


def test_an_id_that_is_a_string_and_stands_twice_is_told_as_it_is(snapline, foreign):
    change(foreign / "in/a.parquet", uuid=["z-2", "b-3", "b-3", "z-2"])
    code, _, err = snapline(*WHAT, *NAMES)
    assert (code, "the id 'b-3' stands twice in the input" in err) == (2, True)


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (
            lambda d: change(d / "in/a.parquet", uuid=["z", None, "b", "a"]),
            "in/a.parquet: column 'id' has nulls",
        ),
        (
            lambda d: change(d / "out/a.parquet", **{"the.ids": [["z-2", None], []]}),
            "out/a.parquet: the lists of column 'ids' hold nulls",
        ),
        (
            lambda d: without(d / "in/a.parquet", "uuid"),
            "in/a.parquet (--input) has no column 'uuid' (a string or a whole number): it has ts, page, "
            "id; --id COL says which of them it is, or --column input.id=COL here only",
        ),
    ],
)
def test_names_that_do_not_fit_are_told_with_those_that_are_there(snapline, foreign, spoil, word):
    spoil(foreign)
    code, out, err = snapline(*WHAT, *NAMES)
    assert (code, out) == (2, "")
    assert word in err


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_may_be_timestamps(snapline, recorded, unit):
    stamp = pa.timestamp(unit, "UTC")
    seconds = pa.array([-7, 5, 12, 25], pa.timestamp("s", "UTC"))
    windows = pa.array([-10, 0, 10, 20], pa.timestamp("s", "UTC"))
    save(recorded / "in" / "a.parquet", id=[1, 2, 3, 4], time=seconds.cast(stamp), resource=[7] * 4)
    (recorded / "out" / "b.parquet").unlink()
    save(
        recorded / "out" / "a.parquet",
        resource=pa.array([7] * 4, pa.int32()),
        window=windows.cast(stamp),
        count=pa.array([1] * 4, pa.uint8()),
        ids=pa.array([[1], [2], [3], [4]], pa.large_list(pa.int32())),
    )
    assert snapline("--input", "in", "--output", "out", "--window", "10s")[0] == 0
    code, out, _ = snapline("--input", "in", "--output", "out", "--window", "10ms")
    assert (code, "misplaced" in out or "wrong window" in out) == (1, True)


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_are_cut_to_milliseconds_downwards(snapline, recorded, unit):
    times = pa.array([-1, 9_999, 10_001], pa.timestamp("us")).cast(pa.timestamp(unit))
    save(recorded / "in" / "a.parquet", id=[1, 2, 3], time=times, resource=list("aaa"))
    windows, ids = [-10, 0, 10], [[1], [2], [3]]
    (recorded / "out" / "b.parquet").unlink()
    save(recorded / "out/a.parquet", resource=list("aaa"), window=windows, count=[1] * 3, ids=ids)
    assert snapline(*WHAT)[0] == 0


def test_two_streams_are_judged_by_both_sides(snapline, recorded):
    save(
        recorded / "in" / "a.parquet",
        id=[1, 2, 3],
        time=[0, 1, 2],
        resource=[7] * 3,
        post=[False, True, False],
    )
    (recorded / "out" / "b.parquet").unlink()
    both = {"resource": [7], "window": [0], "gets": [2], "posts": [1], "get_ids": [[1, 3]]}
    save(recorded / "out" / "a.parquet", **both, post_ids=[[2]])
    assert snapline(*WHAT)[0] == 0
    save(recorded / "out" / "a.parquet", **both, post_ids=pa.array([[]], IDS))
    assert snapline(*WHAT)[0] == 1


def test_an_output_that_never_came_is_a_verdict(snapline, recorded):
    (recorded / "out" / "b.parquet").unlink()
    save(recorded / "out" / "a.parquet", **NO_OUTPUT)
    code, out, _ = snapline(*WHAT)
    assert (code, "4 lost" in out, "truncated 3" in out) == (1, True, True)
    assert snapline(*WHAT, "--promise", "at-most-once")[0] == 3  # of nothing, nothing is twice


# Bad input.


def cut(file):
    file.write_bytes(file.read_bytes()[:-20])


def scribble(file):
    whole = bytearray(file.read_bytes())
    whole[4:60] = b"\xff" * 56
    file.write_bytes(bytes(whole))


def without(file, column):
    parquet.write_table(parquet.read_table(file).drop_columns([column]), file)


def change(file, **columns):
    table = parquet.read_table(file)
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    parquet.write_table(table, file)


BAD = {
    "a time that means that there is none": (
        lambda d: change(d / "in/a.parquet", time=[0, 5, 12, -(2**63)]),
        "a time lies so far from 1970 that its window does not begin and end within 64 bits",
    ),
    "a time that is the highest of all": (
        lambda d: change(d / "in/a.parquet", time=[0, 5, 12, 2**63 - 1]),
        "a time lies so far from 1970",
    ),
    "a timestamp that cannot be cut to milliseconds": (
        lambda d: change(
            d / "in/a.parquet", time=pa.array([0, 5, 12, 1 - 2**63], pa.timestamp("ns"))
        ),
        "in/a.parquet: a time lies so far from 1970",
    ),
    "a link that leads nowhere": (
        lambda d: (d / "out/c.parquet").symlink_to(d / "gone.parquet"),
        "gone.parquet is not Parquet, or it is damaged",
    ),
    "a column lacks in the input": (
        lambda d: without(d / "in/a.parquet", "time"),
        "in/a.parquet (--input) has no column 'time' (a time: a timestamp, or milliseconds as int64): "
        "it has id, resource; --time COL says which of them it is",
    ),
    "a column lacks in one file of the output": (
        lambda d: without(d / "out/b.parquet", "ids"),
        "out/b.parquet (--output) has no column 'ids' (a list of strings or whole numbers): it has",
    ),
    "a column lacks in the late output": (
        lambda d: save(d / "late/a.parquet", event=[1]),
        "late/a.parquet (--late) has no column 'id'",
    ),
    "half of two streams": (
        lambda d: save(d / "out/a.parquet", resource=["a"], window=[0], gets=[1], get_ids=[[1]]),
        "out/a.parquet (--output) has no column 'posts'",
    ),
    "an empty directory": (
        lambda d: [file.unlink() for file in (d / "out").iterdir()],
        "--output out has no files that end in .parquet: name where they are",
    ),
    "no such directory": (
        lambda d: (d / "in").rename(d / "elsewhere"),
        "--input in: there is no such file or directory",
    ),
    "not Parquet": (
        lambda d: (d / "out/b.parquet").write_text("resource,window\n"),
        "out/b.parquet is not Parquet, or it is damaged or cut short",
    ),
    "truncated Parquet": (
        lambda d: cut(d / "in/a.parquet"),
        "in/a.parquet is not Parquet, or it is damaged or cut short",
    ),
    "an empty file": (
        lambda d: (d / "in/a.parquet").write_bytes(b""),
        "in/a.parquet is not Parquet, or it is damaged or cut short",
    ),
    "ids that are strings in the input only": (
        lambda d: change(d / "in/a.parquet", id=list("abcd")),
        "column 'id' is string in --input, but 'ids' is list<element: int64> in --output: cast one of",
    ),
    "ids that are strings in the late output only": (
        lambda d: save(d / "late/a.parquet", id=["a"]),
        "column 'id' is int64 in --input, but 'id' is string in --late: cast one of them",
    ),
    "lists of numbers that are not whole": (
        lambda d: change(d / "out/b.parquet", ids=[[4.5]]),
        "out/b.parquet: column 'ids' is list<element: double>, but must be a list of strings or whole",
    ),
    "lists of strings in one file": (
        lambda d: change(d / "out/b.parquet", ids=[["4"]]),
        "column 'ids' is not alike in",
    ),
    "times that are text": (
        lambda d: change(d / "in/a.parquet", time=["noon"] * 4),
        "in/a.parquet: column 'time' is string, but must be a time",
    ),
    "files that are not alike": (
        lambda d: change(d / "out/b.parquet", resource=[7]),
        "column 'resource' is not alike in",
    ),
    "resources of two types": (
        lambda d: change(d / "in/a.parquet", resource=[1, 1, 2, 1]),
        "column 'resource' is int64 in --input, but 'resource' is string in --output: cast one of them",
    ),
    "no events": (
        lambda d: save(
            d / "in/a.parquet",
            id=pa.array([], pa.int64()),
            time=pa.array([], pa.int64()),
            resource=pa.array([], pa.string()),
        ),
        "--input in has no events: there is nothing to judge by",
    ),
    "an id twice in the input": (
        lambda d: change(d / "in/a.parquet", id=[1, 2, 3, 1]),
        "the id 1 stands twice in the input: an event needs an id of its own",
    ),
    "nulls in the input": (
        lambda d: change(d / "in/a.parquet", time=[0, None, 12, 25]),
        "in/a.parquet: column 'time' has nulls",
    ),
    "nulls in a list": (
        lambda d: change(d / "out/b.parquet", ids=pa.array([[None]], IDS)),
        "out/b.parquet: the lists of column 'ids' hold nulls",
    ),
    "no id of the output is known": (
        lambda d: change(d / "in/a.parquet", id=[11, 12, 13, 14]),
        "none of the ids in the output (such as 1) is an id of the input: they do not belong together",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_told_in_one_message(snapline, recorded, kind):
    spoil, word = BAD[kind]
    spoil(recorded)
    late = ("--late", "late") if (recorded / "late").exists() else ()
    code, out, err = snapline(*WHAT, *late)
    assert (code, out) == (2, "")
    said = [line for line in err.splitlines() if line not in ("reading ...", "judging ...")]
    assert len(said) == 1
    assert said[0].startswith("bad input: ")
    assert word in said[0]


def test_a_damaged_page_is_told_with_its_file(snapline, recorded):
    scribble(recorded / "in/a.parquet")
    code, out, err = snapline(*WHAT)
    assert (code, out) == (2, "")
    assert "in/a.parquet is not Parquet, or it is damaged or cut short" in err
    assert "Traceback" not in err


def test_an_unknown_id_among_known_ones_is_a_finding(snapline, recorded):
    change(recorded / "out/b.parquet", ids=[[99]])
    code, out, _ = snapline(*WHAT)
    assert (code, "invented 1" in out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((), "say what to judge: a RUN ('snapline runs' lists them), or --input DIR --output DIR"),
        (("--input", "in"), "say what to judge"),
        (WHAT[:4], "--window is missing: the size of the windows of the output, as in 10s"),
        ((*WHAT[:4], "--window", "10"), "--window is written as 500ms, 20s, 2m or 1h, not '10'"),
        ((*WHAT[:4], "--window", "0s"), "--window is from 1ms to 8760h, not 0s"),
        ((*WHAT, "--engine", "flink"), "--engine takes auto, process or spark, not 'flink'"),
        ((*WHAT, "--uncommitted"), "--uncommitted is for a RUN"),
        ((*WHAT, "--reference"), "--reference is for a RUN"),
        ((*WHAT, "--junit", "no/r.xml"), "cannot write no/r.xml: there is no directory no"),
        (
            (*WHAT, "--max-late", "5"),
            "--max-late is a share from 0 to 1, written as 5% or 0.05, not '5'",
        ),
        ((*WHAT, "--max-late", "nan"), "--max-late is a share"),
        ((*WHAT, "--max-late", "some"), "--max-late is a share"),
        ((*WHAT, "--until", "noon"), "--until is an event time in ms, or a date as in 2026-03-01"),
        ((*WHAT, "--lateness", "5"), "--lateness is written as 500ms, 20s"),
        (
            (*WHAT, "--column", "window"),
            "--column is written as NAME=COL, or as TABLE.NAME=COL for one",
        ),
        (
            (*WHAT, "--column", "late.window=x"),
            "there is no 'late.window' to be named (input: id, time,",
        ),
        ((*WHAT, "--id", "a", "--column", "id=b"), "id is named twice: 'a' and 'b'"),
        (
            (*WHAT, "--column", "position=seq"),
            "has no column 'seq' (a whole number (int64)): it has",
        ),
        (("last", "--until", "5"), "--until is for outputs of other systems"),
        (("last", "--ignore-open"), "--ignore-open is for outputs of other systems"),
        (("last", "--id", "x"), "--id is for outputs of other systems"),
        (("last",), "there are no runs in runs"),
        (("last", "--window", "1s"), "--window is for outputs of other systems"),
        (("last", "--engine", "spark"), "--engine is for --input and --output"),
    ],
)
def test_what_makes_no_sense_is_told(snapline, recorded, arguments, word):
    code, out, err = snapline(*arguments)
    assert (code, out) == (2, "")
    assert word in err


def test_the_engine_follows_from_the_size(snapline, recorded, monkeypatch):
    monkeypatch.setattr(judge_recorded, "PROCESS_VALUES_MAX", 7)

    def started(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(recorded_frames, "session_for", started)
    assert snapline(*WHAT)[0] == 130
    assert snapline(*WHAT, "--engine", "process")[0] == 0


def test_reliability_is_never_rounded_up_to_all():
    assert reliability(Judged(10**9, 1, 0, 1, 0, 10**9 - 1, 1, 0)) == "99.9999 %"
    assert reliability(Judged(10**9, 1, 0, 0, 0, 10**9, 1, 0)) == "100 %"


def test_the_page_has_every_cause_with_what_it_breaks():
    page = Path(__file__).parents[3] / "docs" / "validate.md"
    rows = [
        line.split("|")[1:-1] for line in page.read_text().splitlines() if line.startswith("| `")
    ]
    causes = [cells for cells in rows if len(cells) == 3]
    told = {
        name.strip(" `"): {word.strip() for word in broken.split(",")} for name, _, broken in causes
    }
    assert [name for name in told if name in {*Cause}] == [*Cause]
    for cause in Cause:
        assert told[cause] == {level.value.replace("-", " ") for level in BREAKS[cause]}
