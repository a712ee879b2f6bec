"""Map, filter, and functions of single records."""

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.operators.operator import Operator
from snapline.dataflow.operators.stateless import Filter, Map, MapRecords

BATCH = Batch.of(a=[1, 2, 3], s=["x", "y", "z"])


def test_an_operator_passes_everything_on_by_default():
    ((name, batch),) = Operator().process("in", BATCH)
    assert (name, batch) == ("out", BATCH)
    assert Operator().on_watermark(5) == ()


def test_map_puts_the_result_in_place_of_the_batch():
    ((_, out),) = Map(lambda b: b.with_columns(a=b["a"] * 2)).process("in", BATCH)
    assert out.rows() == [(2, "x"), (4, "y"), (6, "z")]


def test_a_function_may_return_more_records_or_none():
    twice = Map(lambda b: b.take(np.repeat(np.arange(b.length), 2)))
    ((_, out),) = twice.process("in", BATCH)
    assert out["a"].tolist() == [1, 1, 2, 2, 3, 3]
    assert Map(lambda b: b.slice(0, 0)).process("in", BATCH) == ()


def test_filter_keeps_what_the_mask_keeps():
    ((_, out),) = Filter(lambda b: b["a"] != 2).process("in", BATCH)
    assert out.rows() == [(1, "x"), (3, "z")]
    assert Filter(lambda b: b["a"] > 9).process("in", BATCH) == ()


def test_a_batch_that_passes_whole_is_not_copied():
    ((_, out),) = Filter(lambda b: b["a"] > 0).process("in", BATCH)
    assert out is BATCH


def test_a_function_of_a_record_returns_one_several_or_none():
    def function(record):
        if record["a"] == 1:
            return {"b": record["s"] * 2}
        return [{"b": "p"}, {"b": "q"}] if record["a"] == 2 else None

    ((_, out),) = MapRecords(function).process("in", BATCH)
    assert out.to_pydict() == {"b": ["xx", "p", "q"]}
    assert MapRecords(lambda record: None).process("in", BATCH) == ()
    assert MapRecords(lambda record: []).process("in", BATCH) == ()
