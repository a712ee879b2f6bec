"""A verdict as JSON and as JUnit XML: complete, stable, and accepted by parsers."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from snapline.core.guarantee import Guarantee
from snapline.errors import UsageError
from snapline.judge.report_files import (
    Report,
    report_of,
    to_json,
    to_junit,
    write_junit,
)
from snapline.metrics.reliability import LineageFigures
from snapline.validate.causes import Cause
from snapline.validate.judged import PROMISES, Judged, Witness
from snapline.validate.sentences import sentence

EXACTLY, LEAST, MOST = Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE
FINE = Judged(100, 9, 3, 0, 0, 100, 97, 3)
DUPLICATE = Witness(Cause.DUPLICATE, "/a\0", 10_000, 17, 9, 4)
LOST = Witness(Cause.TRUNCATED, "/a\0", 20_000, 18, None)
BROKEN = Judged(
    *(100, 9, 3, 1, 2, 97, 96, 3),
    {Cause.DUPLICATE: 2, Cause.TRUNCATED: 1},
    {Cause.DUPLICATE: DUPLICATE, Cause.TRUNCATED: LOST},
)
SENTENCES = {w.cause: sentence(w, 10_000, fault="active: kill") for w in BROKEN.witnesses.values()}


def broken(promised=EXACTLY, **options):
    return report_of("run-1", BROKEN, SENTENCES, promised, **options)


def junit(report):
    suites = ElementTree.fromstring(to_junit(report))
    suite = suites.find("testsuite")
    assert [case.get("name") for case in suite.iter("testcase")] == [g.value for g in PROMISES]
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        count = len(suite.findall(f"testcase/{tag}"))
        assert suite.get(name) == suites.get(name) == str(count)
    assert suite.get("tests") == "3"
    return {case.get("name"): next(iter(case), None) for case in suite.iter("testcase")}


def test_json_has_all_that_was_found():
    report = replace(
        broken(view="uncommitted"),
        metrics=LineageFigures(3, 97.0, 1.5, None, 99.0, None, None, None, {}),
    )
    assert to_json(report) == {
        "version": 1,
        "judged": "run-1",
        "view": "uncommitted",
        "by": "in process",
        "promise": "exactly-once",
        "kept": "no",
        "because": f"duplicate: {SENTENCES[Cause.DUPLICATE]}",
        "guarantees": {"at-most-once": "no", "at-least-once": "no", "exactly-once": "no"},
        "inputs": 100,
        "outputs": 9,
        "late": 3,
        "lost": 1,
        "repeated": 2,
        "reliable": 97,
        "reliability": 97.0,
        "counted": 96,
        "late_events": 3,
        "late_share": 0.03,
        "max_late": None,
        "unjudged": {"events": 0, "windows": 0},
        "undecided": None,
        "causes": [
            {
                "cause": "duplicate",
                "resource": "/a\0",
                "window": 10_000,
                "id": 17,
                "position": 9,
                "other": 4,
                "count": 2,
                "breaks": ["at-most-once", "exactly-once"],
                "sentence": SENTENCES[Cause.DUPLICATE],
            },
            {
                "cause": "truncated",
                "resource": "/a\0",
                "window": 20_000,
                "id": 18,
                "position": None,
                "other": None,
                "count": 1,
                "breaks": ["at-least-once", "exactly-once"],
                "sentence": SENTENCES[Cause.TRUNCATED],
            },
        ],
        "metrics": {
            "events": 3,
            "reliability": 97.0,
            "reliable_throughput": 1.5,
            "latency_ms": None,
            "correctness": 99.0,
            "from_first_ms": None,
            "from_last_ms": None,
            "failure_cost_ms": None,
            "phases": {},
        },
    }


def test_a_report_is_plain_json():
    document = to_json(broken())
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_the_promise_decides_and_names_the_cause_that_breaks_it():
    assert broken(LEAST).because == f"truncated: {SENTENCES[Cause.TRUNCATED]}"
    assert broken(MOST).because == f"duplicate: {SENTENCES[Cause.DUPLICATE]}"
    nothing = broken(Guarantee.NOTHING)
    assert nothing.kept == "no"
    assert nothing.because.startswith("nothing was promised, and the output is wrong: duplicate: ")
    fine = report_of("run-1", FINE, {}, EXACTLY)
    assert (fine.kept, fine.because) == (
        "yes",
        "100 of 100 events were counted once in 9 outputs, or late (3)",
    )


def test_a_kept_promise_is_three_passed_tests():
    assert set(junit(report_of("run-1", FINE, {}, EXACTLY)).values()) == {None}


@pytest.mark.parametrize("promised", [EXACTLY, Guarantee.NOTHING])
def test_a_broken_promise_fails_with_the_witness(promised):
    results = junit(broken(promised))
    failure = results.pop("exactly-once")
    assert failure.tag == "failure"
    assert SENTENCES[Cause.DUPLICATE] in failure.get("message")
    assert failure.text.splitlines() == [
        f"duplicate (2): {SENTENCES[Cause.DUPLICATE]}",
        f"truncated (1): {SENTENCES[Cause.TRUNCATED]}",
    ]
    assert {result.tag for result in results.values()} == {"skipped"}
    assert results["at-most-once"].get("message") == "not promised; whether it was kept: no"


def test_only_what_breaks_the_promise_is_told_of_it():
    failure = junit(broken(LEAST))["at-least-once"]
    assert failure.text == f"truncated (1): {SENTENCES[Cause.TRUNCATED]}"


def test_a_promise_that_nobody_can_judge_is_an_error():
    unsure = Judged(
        *(100, 9, 3, 1, 0, 99, 96, 3), {Cause.TRUNCATED: 1}, {Cause.TRUNCATED: LOST}, "cut short"
    )
    results = junit(report_of("run-1", unsure, SENTENCES, LEAST))
    assert results["at-least-once"].tag == "error"
    assert results["at-least-once"].get("message") == "cut short"
    assert results["exactly-once"].tag == "skipped"


def test_what_xml_cannot_hold_does_not_spoil_the_file(tmp_path):
    answers = dict.fromkeys(PROMISES, "no")
    report = Report(
        "a<b>&\x01", EXACTLY, 'bad "\ud800" \x00', answers, problems=("one \x02", "two")
    )
    write_junit(report, tmp_path / "report.xml")
    suite = ElementTree.parse(tmp_path / "report.xml").getroot().find("testsuite")
    assert suite.get("name") == "snapline a<b>&\ufffd"
    assert suite.find("testcase/failure").get("message") == 'bad "\ufffd" \ufffd'
    assert suite.find("testcase/failure").text == "one \ufffd\ntwo"
    assert json.loads(json.dumps(to_json(report)))["problems"] == ["one \x02", "two"]


def test_a_file_that_cannot_be_written_is_bad_input(tmp_path):
    with pytest.raises(UsageError, match=r"cannot write .*none/x: No such file or directory"):
        write_junit(broken(), tmp_path / "none" / "x")
