"""How far an answer is off, in one line for people, and as JSON of a verdict."""

from snapline.cli.terminal.summary import deviation_text
from snapline.core.guarantee import Guarantee
from snapline.judge.report_files import Report, to_json
from snapline.metrics.deviation import ColumnDeviation, DeviationFigures

OFF = ColumnDeviation(2.5, 9.0, 1.0, 4.0, 8.0, 0.5, 40.0)
FIGURES = DeviationFigures(8_000, 200, 195, 0.05, 0.025, 3, 1.5, {"count": OFF})


def test_all_that_is_wrong_is_said():
    assert deviation_text(FIGURES) == (
        "200 rows from 8.0 s on: count off by 2.5 (RMSE; at most 9, typical value 40), 5 % missing, "
        "2.5 % again, 3 rows unexpected, right again after 1.5 s"
    )


def test_output_that_stays_wrong_is_not_called_right_again():
    found = DeviationFigures(0, 10, 10, 0.0, 0.0, 0, None, {"count": OFF})
    assert deviation_text(found).endswith("typical value 40), wrong to the end")


def test_nothing_wrong_is_said_in_few_words():
    found = DeviationFigures(8_000, 200, 200, 0.0, 0.0, 0, 0.0, {})
    assert deviation_text(found) == "none: 200 rows of the answer from 8.0 s on as they should be"


def test_a_verdict_as_json_has_the_figures():
    level = Guarantee.EXACTLY_ONCE
    report = Report("x", level, "because", {level: "yes"}, deviation=FIGURES)
    assert to_json(report)["deviation"]["columns"]["count"]["rmse"] == 2.5
    assert "deviation" not in to_json(Report("x", level, "because", {level: "yes"}))
