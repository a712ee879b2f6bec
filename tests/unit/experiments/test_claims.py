"""Claims are read as values: what they mean, and what is refused."""

import pytest

from snapline.errors import UsageError
from snapline.experiments.papers.claims import (
    AllOf,
    AnyOf,
    ClaimedOrder,
    ClaimSide,
    Sign,
    orders,
    read_claim,
)


def test_a_claim_compares_a_figure_with_a_multiple_of_another():
    assert read_claim("rate[aligned] >= 0.95 * rate[none]") == ClaimedOrder(
        ClaimSide(1.0, "rate", ("aligned",)), Sign.AT_LEAST, ClaimSide(0.95, "rate", ("none",))
    )


def test_a_claim_compares_a_figure_with_a_number():
    assert read_claim("checkpoints.useless[hmnr q3]<=0") == ClaimedOrder(
        ClaimSide(1.0, "checkpoints.useless", ("hmnr", "q3")), Sign.AT_MOST, ClaimSide(0.0)
    )


def test_columns_may_have_blanks():
    found = read_claim("cost['kill slot=1 at=6s', sst] < 5")
    assert found.left.columns == ("kill slot=1 at=6s", "sst")
    assert str(found) == "cost['kill slot=1 at=6s' sst] < 5"


def test_and_binds_closer_than_or_and_brackets_bind_closest():
    a, b, c = "x[a] < 1", "x[b] < 1", "x[c] < 1"
    found = read_claim(f"{a} or {b} and {c}")
    assert isinstance(found, AnyOf)
    assert isinstance(found.parts[1], AllOf)
    assert [str(each) for each in orders(found)] == [a, b, c]
    grouped = read_claim(f"({a} or {b}) and {c}")
    assert isinstance(grouped, AllOf)
    assert isinstance(grouped.parts[0], AnyOf)


def test_within_is_two_comparisons():
    found = read_claim("restart[a] within 25% of restart[b]")
    assert isinstance(found, AllOf)
    lower, upper = found.parts
    assert (lower.sign, lower.right.factor) == (Sign.AT_LEAST, 1 / 1.25)
    assert (upper.sign, upper.right.factor) == (Sign.AT_MOST, 1.25)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a figure is expected, not the end"),
        ("rate[a]", "<, <=, > or >= is expected, not the end"),
        ("rate < 2", "say of which columns"),
        ("1 < 2", "compares two numbers"),
        ("2 * rate[a] < rate[b]", "by itself on the left"),
        ("5 > rate[a]", "by itself on the left"),
        ("rate[a] < 5% of rate[b]", "a percentage stands behind"),
        ("rate[a] within 5 of rate[b]", "a percentage is expected, not '5'"),
        ("rate[a] < 1 rate[b] < 2", "and, or, or the end is expected"),
        ("(rate[a] < 1", ") is expected, not the end"),
        ("rate[a] == 1", "is not understood at '== 1'"),
        ("__import__('os').system('true')", "is not understood at"),
    ],
)
def test_what_is_no_claim_is_refused(text, told):
    with pytest.raises(UsageError, match=None) as refused:
        read_claim(text)
    assert told in str(refused.value)
