"""`snapline compare`: figures of stored runs, in pairs."""

from typing import Any

from snapline.experiments.comparison import compare, differing, share


def metrics(rate: float, p99: float, recovery: list[float | None]) -> dict[str, Any]:
    return {
        "rate": {"read": rate, "written": rate},
        "latency_ms": {"p50": None, "p99": p99, "max": p99},
        "recovery_s": recovery,
        "bytes": {"wire": 100, "log": 0},
    }


def test_each_figure_that_both_have_is_compared() -> None:
    first = [metrics(100 + n, 10 + n, [1.0, 3.0]) for n in range(6)]
    second = [metrics(50 + n / 2, 10 + n, [4.0]) for n in range(6)]
    found = {each.figure.name: each for each in compare(first, second)}
    assert list(found) == ["records read", "latency p99", "recovery", "bytes on the wire"]
    assert found["records read"].words == "50.0 % slower"
    assert found["latency p99"].words == "not distinguishable"
    assert found["recovery"].words == "100.0 % longer"
    assert found["records read"].is_worse_by(1.5)
    assert not found["records read"].is_worse_by(2.5)
    assert not found["latency p99"].is_worse_by(1.01)


def test_a_gain_is_never_worse() -> None:
    first = [metrics(100 + n, 10 + n, [2.0]) for n in range(6)]
    second = [metrics(200 + n, 5 + n / 2, [1.0]) for n in range(6)]
    assert not any(each.is_worse_by(1.0) for each in compare(first, second))


def test_few_pairs_only_indicate() -> None:
    first, second = [metrics(100, 10, [])] * 5, [metrics(300, 10, [])] * 5
    found = next(compare(first, second))
    assert found.words == "indicated: 3.0 times faster"
    assert not found.is_worse_by(1.0)


def test_a_time_that_was_never_reached_has_no_median() -> None:
    first, second = [metrics(1, 1, [1.0, None])], [metrics(1, 1, [1.0])]
    assert "recovery" not in {each.figure.name for each in compare(first, second)}


def test_shares_are_written_for_people() -> None:
    assert (share(1.123), share(0.75), share(3.14)) == ("12.3 %", "25.0 %", "3.1 times")


def test_settings_that_differ() -> None:
    assert differing({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}) == {"b": (2, 3), "c": (None, 4)}
