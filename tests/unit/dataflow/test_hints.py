"""What a builder says about a step that it does not have, and that it stays an ordinary object."""

import copy
import pickle

import pytest

import snapline as sl
from snapline.dataflow.graph import Dataflow
from snapline.errors import GraphError


def bids(flow):
    return flow.source(sl.nexmark.bids(rate=10, seed=1), name="in")


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda flow, stream: stream.groupBy, "a Stream has no 'groupBy': use key_by"),
        (lambda flow, stream: stream.group_by, "use key_by"),
        (lambda flow, stream: stream.keyBy, "use key_by$"),
        (lambda flow, stream: stream.withColumn, "use map\\(lambda batch: batch.with_columns"),
        (lambda flow, stream: stream.where, "use filter"),
        (lambda flow, stream: stream.join, "use key_by\\(...\\).join"),
        (lambda flow, stream: stream.agg, "use key_by\\(...\\).tumbling"),
        (lambda flow, stream: stream.filtre, "did you mean filter"),
        (lambda flow, stream: stream.countt, "'countt': use key_by\\(...\\).count"),
        (lambda flow, stream: stream.key_by("id").reduceByKey, "use fold"),
        (lambda flow, stream: stream.key_by("id").hopping, "use key_by\\(...\\).sliding"),
        (lambda flow, stream: stream.key_by("id").session, "there are no sessions"),
        (lambda flow, stream: stream.key_by("id").tumbling("1s").mean, "divide in a map"),
        (lambda flow, stream: stream.sliding(rows=3).mean, 'aggregate\\(result=\\("mean"'),
        (lambda flow, stream: stream.sliding(rows=3).sink, "say first what is made"),
        (lambda flow, stream: stream.quux, "it has .*flat_map, inputs, key_by, map"),
        (lambda flow, stream: stream.key_by("id").agg, "a KeyedStream has no 'agg': use tumbling"),
        (lambda flow, stream: stream.key_by("id").tumbling("1s").agg, "use aggregate"),
        (lambda flow, stream: stream.key_by("id").tumbling("1s").sink, "say first what is made"),
        (lambda flow, stream: flow.map, "a Dataflow has no 'map': begin a stream with source"),
        (lambda flow, stream: flow.feedback().map, "a Loop has no 'map': a loop is no stream"),
    ],
)
def test_a_step_of_another_system_is_answered_with_ours(asked, advice):
    flow = Dataflow("f")
    with pytest.raises(GraphError, match=advice):
        asked(flow, bids(flow))


def test_builders_are_asked_copied_and_pickled_as_any_object():
    flow = Dataflow("f")
    stream = bids(flow)
    windows = stream.key_by("id").tumbling("1s")
    sliding = stream.sliding("2s", every="1s")
    for builder in (flow, flow.feedback(), stream, windows.stream, windows, sliding):
        assert not hasattr(builder, "groupBy")
        assert not hasattr(builder, "__array__")
        for again in (copy.copy(builder), copy.deepcopy(builder)):
            assert type(again) is type(builder)
        assert type(pickle.loads(pickle.dumps(builder))) is type(builder)
