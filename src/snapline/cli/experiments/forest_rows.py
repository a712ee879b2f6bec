"""Compared figures as the rows of a forest plot."""

from typing import TYPE_CHECKING

from snapline.report.charts.forest import ForestRow
from snapline.report.charts.scales import short

if TYPE_CHECKING:
    from snapline.experiments.comparison import Compared


def forest_row(name: str, compared: "Compared", floor: float | None) -> ForestRow:
    """One comparison; `floor` is what equal settings reach by chance, if that is known."""
    from snapline.experiments.statistics import Difference

    ratio, found = compared.ratio, compared.answer.difference
    kinds = {Difference.MORE: "more", Difference.LESS: "less"}
    known = ratio.level > 0
    return ForestRow(
        name,
        ratio.estimate,
        ratio.low if known else None,
        ratio.high if known else None,
        compared.words if known else f"{short(ratio.estimate)} times, from one pair",
        kinds.get(found, "same") if known else "same",
        floor,
    )
