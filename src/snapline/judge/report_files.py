"""A verdict as files: JSON for programs, JUnit XML for build servers.

*JSON*, one object; within a version keys are only ever added:

- `judged` (what: a run, an output), `view` (`committed`: what readers see; `uncommitted`: all that was
  written, of an exactly-once system with what it took back), `by` (who judged);
- `promise`, `kept` (`yes`, `no`, `unknown`), `because` (one sentence), `guarantees` (each with its answer);
- of outputs with lineage: `inputs`, `outputs`, `late`, `lost`, `repeated`, `reliable`, `reliability` (in
  percent), `counted` (events that came out in time), `late_events`, `late_share` (from 0 to 1), `max_late`
  (what it may be, or null), `unjudged` (`events` and `windows` behind the time up to which was judged),
  `undecided` (why something is unknown, or null), `causes`: a list, each with `cause`, `count`, `breaks`
  (guarantees), the fields of its `Witness`, and `sentence`; of others `problems`, a list of texts;
- of a run that is not over: `records_read`, how many records it had read by the line up to which it was
  judged;
- of a run with faults: `faults`, a list, each with `statement`, `struck` and `at_ms`;
- `metrics`: of outputs with lineage the figures of `metrics.reliability`, else empty;
- of a run whose answer may be off: `deviation`, the figures of `metrics.deviation`;
- `version`: it changes when a key changes its meaning or goes.

*JUnit*, one testcase for each guarantee. The promised one fails with the sentence of the witness if it is
broken, and is an error if nobody knows: servers take a skipped test for a passed one, and a promise that
could not be judged must not turn a build green. A guarantee that nobody promised is skipped unless it was
kept.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from snapline.chaos.strikes import Strike
from snapline.core.guarantee import Guarantee
from snapline.errors import UsageError
from snapline.metrics import json_form
from snapline.metrics.deviation import DeviationFigures
from snapline.metrics.reliability import LineageFigures
from snapline.validate.causes import BREAKS, Cause
from snapline.validate.judged import PROMISES, Answer, Judged
from snapline.wording import are, plural

VERSION: Final = 1
_FIGURES: Final = (
    *("inputs", "outputs", "late", "lost", "repeated", "reliable", "reliability"),
    *("counted", "late_events", "late_share"),
)
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on one output and all that belongs to it. Without a promise, exactly once decides."""

    name: str  # the run, or the output
    promised: Guarantee
    because: str
    guarantees: Mapping[Guarantee, Answer]
    judged: Judged | None = None  # where outputs name the inputs behind them
    sentences: Mapping[Cause, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()  # where they do not
    metrics: LineageFigures | None = None
    view: str = "committed"
    by: str = "in process"
    faults: tuple[Strike, ...] = ()  # of a run: every fault of its plan, and whether it struck
    records: int | None = None  # of a run that is not over: what it had read by its last line
    deviation: DeviationFigures | None = None  # of a run whose answer may be off

    @property
    def kept(self) -> Answer:
        """Whether the promise was kept."""
        return self.guarantees[held_to(self.promised)]


NOT_DECLARED: Final = (
    "bounded loss is what runs of Snapline may promise: other systems do not declare what they lost"
)


def held_to(promised: Guarantee) -> Guarantee:
    """The guarantee that decides: the promised one, or exactly once if nothing was promised."""
    return Guarantee.EXACTLY_ONCE if promised is Guarantee.NOTHING else promised


def report_of(
    name: str,
    judged: Judged,
    sentences: Mapping[Cause, str],
    promised: Guarantee,
    *,
    view: str = "committed",
    by: str = "in process",
) -> Report:
    """The report of a judgement; `sentences` has one for each of its causes."""
    level = held_to(promised)
    kept = judged.kept(level)
    broken = [c for c in Cause if c in sentences and c in judged.causes and level in BREAKS[c]]
    if kept == "no":
        because = _why(judged, broken, sentences)
        if promised is Guarantee.NOTHING:
            because = f"nothing was promised, and the output is wrong: {because}"
    else:
        were = "was" if judged.reliable == 1 else "were"
        because = judged.doubt or (
            f"{judged.reliable:,} of {plural(judged.inputs, 'event')} {were} counted once in "
            f"{plural(judged.outputs, 'output')}, or late ({judged.late:,})"
        )
    answers = {guarantee: judged.kept(guarantee) for guarantee in PROMISES}
    return Report(name, promised, because, answers, judged, sentences, (), None, view, by)


def _why(judged: Judged, broken: Sequence[Cause], sentences: Mapping[Cause, str]) -> str:
    """Why a guarantee is broken: the first cause, or else that too much is late."""
    if broken:
        return f"{broken[0]}: {sentences[broken[0]]}"
    if judged.is_too_late:
        assert judged.max_late is not None
        share, most = late_share(judged), f"{judged.max_late * 100:g} %"
        late = f"{judged.late_events:,} of {plural(judged.inputs, 'event')}"
        return f"{late} {are(judged.late_events)} late, {share}: at most {most} may be"
    return str(judged.leading)


def reliability(judged: Judged) -> str:
    """The share of events that were counted once, in percent; what is shown as 100 % is 100 %."""
    if judged.reliable == judged.inputs:
        return "100 %"
    return f"{min(judged.reliability, 99.9999):.4f} %"


def late_share(judged: Judged) -> str:
    """The share of late events as text, such as `0.25 %`; rounding never makes it 0 % or 100 %."""
    percent = 100 * judged.late_share
    if judged.late_events in (0, judged.inputs):
        return f"{percent:.0f} %"
    return f"{min(max(percent, 0.0001), 99.9999):.4f}".rstrip("0").rstrip(".") + " %"


# JSON.


def to_json(report: Report) -> dict[str, Any]:
    """A report as plain values."""
    document: dict[str, Any] = {
        "version": VERSION,
        "judged": report.name,
        "view": report.view,
        "by": report.by,
        "promise": report.promised.value,
        "kept": report.kept,
        "because": report.because,
        "guarantees": {level.value: answer for level, answer in report.guarantees.items()},
    }
    if report.judged is None:
        document["problems"] = list(report.problems)
    else:
        document |= {name: getattr(report.judged, name) for name in _FIGURES}
        document["max_late"] = report.judged.max_late
        document["unjudged"] = asdict(report.judged.unjudged)
        document["undecided"] = report.judged.doubt
        document["causes"] = [
            _cause(report, cause) for cause in Cause if cause in report.judged.causes
        ]
    if report.records is not None:
        document["records_read"] = report.records
    if report.deviation is not None:
        document["deviation"] = json_form.to_json(report.deviation)
    if report.faults:
        document["faults"] = [asdict(strike) for strike in report.faults]
    metrics = {} if report.metrics is None else json_form.to_json(report.metrics)
    return document | {"metrics": metrics}


def _cause(report: Report, cause: Cause) -> dict[str, Any]:
    assert report.judged is not None
    return {
        **asdict(report.judged.witnesses[cause]),
        "count": report.judged.causes[cause],
        "breaks": [level.value for level in PROMISES if level in BREAKS[cause]],
        "sentence": report.sentences.get(cause),
    }


# JUnit.


def write_junit(report: Report, file: Path) -> None:
    """Write a report. Raises UsageError if it cannot be."""
    _write(file, to_junit(report))


def to_junit(report: Report) -> bytes:
    """A report as JUnit XML."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name=_xml(f"snapline {report.name}"))
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(report).items():
        ElementTree.SubElement(properties, "property", name=name, value=_xml(str(value)))
    for level in report.guarantees:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(f"snapline.{report.name}"), name=level.value
        )
        _add_result(report, level, case)
    results = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {name: len(suite.findall(f"testcase/{tag}")) for name, tag in results.items()}
    for element in (suites, suite):
        element.set("tests", str(len(report.guarantees)))
        for name, count in counts.items():
            element.set(name, str(count))
    text: bytes = ElementTree.tostring(suites, "utf-8", xml_declaration=True)
    return text


def _add_result(report: Report, level: Guarantee, case: ElementTree.Element) -> None:
    answer = report.guarantees[level]
    if answer == "yes":
        return
    if level is not held_to(report.promised):
        why = f"not promised; whether it was kept: {answer}"
        ElementTree.SubElement(case, "skipped", message=why)
        return
    tag = "failure" if answer == "no" else "error"
    result = ElementTree.SubElement(case, tag, message=_xml(report.because), type=answer)
    result.text = _xml(_story(report, level))


def _properties(report: Report) -> dict[str, Any]:
    known = {"view": report.view, "promise": report.promised.value, "by": report.by}
    if report.judged is not None:
        known |= {name: getattr(report.judged, name) for name in _FIGURES}
        known |= {
            f"unjudged_{name}": count for name, count in asdict(report.judged.unjudged).items()
        }
    return known


def _story(report: Report, level: Guarantee) -> str:
    """All causes that break a guarantee, a line each."""
    if report.judged is None:
        return "\n".join(report.problems)
    found = [cause for cause in Cause if cause in report.judged.causes and level in BREAKS[cause]]
    return "\n".join(
        f"{cause} ({report.judged.causes[cause]}): {report.sentences.get(cause, '')}"
        for cause in found
    )


def _xml(text: str) -> str:
    """A text without the characters that XML cannot hold."""
    return _NO_XML.sub("\ufffd", text)


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
