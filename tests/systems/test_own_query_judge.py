"""The judge of a user's own query: which differences are a no, and which could have another reason."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql.types import (
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from snapline.chaos.strikes import Strike
from snapline.systems.own_query.judge import Output, Struck, judge_stream, steady
from snapline.systems.own_query.progress import StreamReports, stream_reports
from snapline.systems.own_query.rows import compare, plain_rows

QUIET = StreamReports(dropped=0, held=0, watermark=None, first_s=None, unreported=0)
SCHEMA = StructType([StructField("name", StringType()), StructField("n", LongType())])
KILLED = Struck((Strike("kill driver on=round", True, 900),), (900,), 500)
BATCH = [("a", 1), ("b", 2), ("b", 2)]


def judged(found, expected=BATCH, struck=KILLED, schema=SCHEMA, appended=True, **reports):
    output = Output(schema, expected, found, replace(QUIET, **reports), appended)
    return judge_stream(output, struck)


def answers(verdict):
    return [verdict.guarantees[level] for level in ("at-most-once", "at-least-once")]


def test_the_rows_of_the_batch_in_any_order_are_exactly_once():
    verdict = judged([("b", 2), ("a", 1), ("b", 2)])
    assert (verdict.kept, set(verdict.guarantees.values())) == ("yes", {"yes"})
    assert verdict.because == "3 rows of output are what the same query gives as a batch"


def test_a_row_that_comes_out_again_is_a_duplicate():
    verdict = judged([*BATCH, ("b", 2)])
    assert (verdict.kept, answers(verdict)) == ("no", ["no", "yes"])
    said = "duplicate name=b, n=2: it came out 3 times, and the batch has it 2 times"
    assert verdict.because == said


def test_a_row_that_does_not_come_out_is_missing():
    verdict = judged(BATCH[:2])
    assert (verdict.kept, answers(verdict)) == ("no", ["yes", "no"])
    assert verdict.because.startswith("missing name=b, n=2: ")


def test_a_wrong_row_is_invented_and_the_right_one_is_missing():
    verdict = judged([("a", 7), *BATCH[1:]])
    assert (verdict.kept, answers(verdict)) == ("no", ["no", "no"])
    assert [problem.kind for problem in verdict.problems] == ["invented", "missing"]


@pytest.mark.parametrize("found", [[("a", 1)], [*BATCH, ("b", 2)], [("a", 9), *BATCH[1:]]])
def test_where_rows_were_dropped_as_late_no_difference_proves_anything(found):
    verdict = judged(found, dropped=4)
    assert (verdict.kept, set(verdict.guarantees.values())) == ("unknown", {"unknown"})
    assert verdict.because.startswith("Spark dropped 4 rows as late")
    assert "sort df by its event time" in verdict.because


def test_rows_that_were_dropped_as_late_and_change_nothing_do_no_harm():
    assert judged(BATCH, dropped=4).kept == "yes"


def test_a_micro_batch_without_a_report_may_have_dropped_rows():
    verdict = judged(BATCH[:1], unreported=1)
    assert verdict.kept == "unknown"
    assert verdict.because.startswith("Spark did not report on 1 micro-batch ")


def test_missing_rows_that_state_may_still_hold_are_unknown_but_excess_is_not():
    assert judged(BATCH[:1], held=2).kept == "unknown"
    assert judged(BATCH[:1], held=2, appended=False).kept == "no"
    verdict = judged([("a", 1), ("a", 1)], held=2)
    assert (verdict.kept, answers(verdict)) == ("no", ["no", "unknown"])


NOON = datetime(2026, 3, 1, 12)
WINDOW = StructType([StructField("start", TimestampType()), StructField("end", TimestampType())])
WINDOWS = StructType([StructField("window", WINDOW), StructField("n", LongType())])


def window(minute, n):
    return ((NOON + timedelta(minutes=minute - 1), NOON + timedelta(minutes=minute)), n)


def test_windows_that_the_watermark_has_not_passed_are_not_judged_and_others_are():
    expected = [window(1, 5), window(2, 6), window(3, 7)]
    watermark = (NOON + timedelta(minutes=2)).astimezone(UTC)
    state = {"expected": expected, "schema": WINDOWS, "watermark": watermark, "held": 1}
    verdict = judged(expected[:2], **state)
    assert verdict.kept == "yes"
    assert verdict.because.endswith("; 1 row of windows still open at the end is not judged")
    assert judged(expected[1:2], **{**state, "held": 0}).kept == "no"  # the first one is closed
    assert (
        judged(expected[:1], **{**state, "held": 0}).kept == "no"
    )  # so is one that ends just then


def test_arrays_in_another_order_are_unknown():
    schema = StructType([StructField("n", LongType()), StructField("all", StringType())])
    verdict = judged([(1, ["y", "x"])], [(1, ["x", "y"])], schema=schema)
    assert verdict.kept == "unknown"
    assert "sort them in build" in verdict.because
    assert judged([(1, ["y", "y"])], [(1, ["x", "y"])], schema=schema).kept == "no"


MISSED = Struck((Strike("kill driver at=9s", False, None),), (), 500)


@pytest.mark.parametrize(
    ("struck", "found", "said"),
    [
        (MISSED, BATCH, "never struck: 'kill driver at=9s'"),
        (replace(KILLED, first_line_ms=1_000), BATCH, "when there was nothing to lose yet"),
        (KILLED, [], "put out nothing"),
    ],
)
def test_a_check_that_proved_nothing_is_unknown(struck, found, said):
    verdict = judged(found, expected=found, struck=struck)
    assert verdict.kept == "unknown"
    assert said in verdict.because


def test_a_no_stays_a_no_where_a_kill_never_struck():
    assert judged([*BATCH, ("a", 1)], struck=MISSED).kept == "no"


# Rows.


def differ(expected, found):
    result = compare(plain_rows(expected), plain_rows(found))
    return sorted(result.missing.elements()), sorted(result.excess.elements())


def test_floats_may_differ_in_their_last_digits_and_no_further():
    assert differ([("a", 0.1 + 0.2)], [("a", 0.3)]) == ([], [])
    assert differ([("a", 1.0)], [("a", 1.0 + 1e-8)]) == ([("a", 1.0)], [("a", 1.0 + 1e-8)])
    assert differ([("a", 0.1 + 0.2)], [("b", 0.3)]) == ([("a", 0.1 + 0.2)], [("b", 0.3)])


def test_each_row_with_floats_is_paired_once():
    assert differ([(0.1 + 0.2,)], [(0.3,), (0.3,)]) == ([], [(0.3,)])
    assert differ([(0.3,), (0.1 + 0.2,)], [(0.3,)]) == ([(0.1 + 0.2,)], [])
    assert differ([(0.1 + 0.2,), (0.1 + 0.2,)], [(0.3,)]) == ([(0.1 + 0.2,)], [])


def test_rows_are_paired_by_all_of_their_floats():
    near = 1.0 + 1e-12
    assert differ([(1.0, 5.0), (1.0, 6.0)], [(near, 6.0), (near, 5.0)]) == ([], [])
    assert differ([(1.0, 5.0)], [(near, 7.0)]) == ([(1.0, 5.0)], [(near, 7.0)])


def test_values_of_every_kind_can_be_compared():
    inf, nan = float("inf"), float("nan")
    row = (None, nan, inf, [1, [2.5]], {"k": [1]}, bytearray(b"x"), (1, (2.0, nan)), NOON)
    assert differ([row], [row]) == ([], [])
    close = (*row[:6], (1, (2.0 + 1e-15, nan)), NOON)
    assert not compare(plain_rows([row]), plain_rows([close]))
    assert compare(plain_rows([row]), plain_rows([(*row[:4], {"k": [2]}, *row[5:])]))
    assert compare(plain_rows([(inf,)]), plain_rows([(-inf,)]))


def test_a_batch_that_differs_from_itself_is_not_steady():
    assert steady([("a", 0.3)], [("a", 0.1 + 0.2)])
    assert not steady([("a", 0.3)], [("a", 0.4)])


# What Spark reports.


def report(number, dropped=0, **more):
    operator = {
        "operatorName": "stateStoreSave",
        "numRowsDroppedByWatermark": dropped,
        "numRowsTotal": 3,
    }
    told = {
        "batchId": number,
        "timestamp": "2026-03-01T12:00:00.000Z",
        "durationMs": {"addBatch": 5, "triggerExecution": 500},
        "eventTime": {"watermark": "2026-03-01T11:00:00.000Z"},
        "stateOperators": [operator],
    }
    return {**told, **more}


def reported(tmp_path, *reports, torn="", committed=2):
    import json

    path = tmp_path / "progress.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in reports) + torn)
    return stream_reports(path, committed)


def test_reports_of_all_lives_are_added_up_and_each_micro_batch_counts_once(tmp_path):
    found = reported(tmp_path, report(0, 1), report(1, 2), report(1, 2), report(2, 4))
    assert (found.dropped, found.held, found.unreported) == (7, 3, 0)
    assert found.watermark == datetime(2026, 3, 1, 11, tzinfo=UTC)
    assert found.first_s == datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC).timestamp()


def test_a_micro_batch_that_a_kill_left_without_a_report_is_missed(tmp_path):
    assert reported(tmp_path, report(0), report(2), torn='{"batchId": 1').unreported == 1
    without = [report(number, eventTime={}) for number in (0, 2)]
    assert reported(tmp_path, *without).unreported == 0  # nothing is late without a watermark


def test_operators_that_hold_nothing_back_are_not_waited_for(tmp_path):
    dedupe = {"operatorName": "dedupe", "numRowsTotal": 50}
    assert reported(tmp_path, report(2, stateOperators=[dedupe])).held == 0


def test_a_schema_with_other_structs_has_no_windows():
    pair = StructType([StructField("start", DoubleType()), StructField("end", DoubleType())])
    schema = StructType([StructField("window", pair)])
    watermark = NOON.astimezone(UTC)
    assert judged([], [((1.0, 2.0),)], schema=schema, watermark=watermark).kept == "no"
