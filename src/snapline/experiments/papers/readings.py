"""Reads a metric of a paper from the result of a run.

A path leads through what `result.json` has below `metrics`: `latency_ms.p50`. Where a figure has several
values, one for each failure, their median counts; a time among them that was never reached counts as
infinite, because the run was over before: it is longer than all that were reached.
"""

import math
from collections.abc import Mapping
from statistics import median
from typing import Any

from snapline.experiments.papers.catalogue import PaperMetric


class NotMeasured(Exception):
    """A run does not have what is asked of it; the message says what."""


def reading(result: Mapping[str, Any], metric: PaperMetric) -> float:
    """The metric of one run; infinite for a time that was never reached. Raises NotMeasured."""
    value = sum(_at(result, path) for path in metric.paths)
    if metric.over is None:
        return value
    over = _at(result, metric.over)
    if not over:
        raise NotMeasured(f"{metric.over} is 0: nothing can be divided by it")
    return value / over


def _at(result: Mapping[str, Any], path: str) -> float:
    found: Any = result["metrics"]
    for name in path.split("."):
        if not isinstance(found, Mapping) or name not in found:
            raise NotMeasured(f"{path} is not measured")
        found = found[name]
    if isinstance(found, list | tuple):
        if not found:
            raise NotMeasured(f"{path}: there was nothing to measure")
        return float(median(math.inf if each is None else each for each in found))
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise NotMeasured(f"{path} is not known of {result['run']}")
    return float(found)
