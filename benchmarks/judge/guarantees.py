"""Whether each protocol keeps its promise on SST and MST, under the faults of PGVal: one table.

    python -m benchmarks.judge.guarantees
    python -m benchmarks.judge.guarantees --protocols aligned,none --topologies sst --faults kill,delay-long

Every run is on Spark, with two slots, and judged event by event. Faults: a slot is killed; stands still for
longer than the time-out; all that it sends or receives is delayed by less than the time-out, or by more.
What has to come out: a delay below the time-out loses no slot, each other fault one; exactly-once protocols
are 100 % reliable; where nothing is promised, a lost slot loses events, and the witness says which.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import snapline as sl
from benchmarks.common.pages import Session, call, names, parser_of, table
from snapline.protocols import PROTOCOLS
from snapline.runs.finished import Run
from snapline.spark.slot_jobs import own_session

SILENCE = "2s"
FAULTS = {
    "kill": "kill slot=1 at=2s",
    "pause": "pause slot=1 at=2s for=3s",
    "delay-short": "delay slot=1 500ms at=2s for=2s",
    "delay-long": "delay slot=1 3s at=2s for=3s",
}
UNNOTICED = "delay-short"
TOPOLOGIES = ("sst", "mst")
HOW = (
    f"Slots are Spark tasks; one is given up after {SILENCE} of silence. *Lost*: slots that were given up,",
    "and how long after the fault. *Reliable*: percent of the events that were processed once and in the",
    "right place: whole run / control / failure / recovery. *Throughput*: unique events processed per",
    "second, by phase. *Latency*: median over the run, in ms, from the first arrival beyond a window's end",
    "until its output was written. *Cost*: how far the greatest latency from the fault on lies above the",
    "mean latency before.",
)


@dataclass(frozen=True)
class Case:
    """One run of the table."""

    protocol: str
    topology: str
    fault: str

    def surprises(self, run: Run) -> list[str]:
        """What is not as it has to be."""
        found = []
        lost = 0 if self.fault == UNNOTICED else 1
        if run.metrics["lost"] != lost:
            found.append(f"{run.metrics['lost']} slots were lost, not {lost}")
        promises = PROTOCOLS[self.protocol].saves
        should = "yes" if promises or not lost else "no"
        if run.verdict.kept != should:
            found.append(f"kept: {run.verdict.kept}, not {should}: {run.verdict.because}")
        if should == "yes" and run.metrics["lineage"]["reliability"] != 100.0:
            found.append(f"{run.metrics['lineage']['reliability']} % reliable")
        return found


def measure(case: Case, session: SparkSession, runs: Path) -> Run:
    """One run, judged."""
    interval: dict[str, Any] = {"interval": "500ms"} if PROTOCOLS[case.protocol].saves else {}
    return sl.run(
        case.topology,
        session,
        protocol=case.protocol,
        slots=2,
        duration="6s",
        size="small",
        faults=FAULTS[case.fault],
        silence=SILENCE,
        runs=runs,
        **interval,
    )


def row(case: Case, run: Run) -> Sequence[object]:
    """A row of the table."""
    figures = run.metrics["lineage"]
    parts = list(figures["phases"].values())
    noticed = ", ".join(f"{s:.1f} s" for s in run.metrics["detection_s"])
    latency, cost = figures["latency_ms"], figures["failure_cost_ms"]
    return (
        case.protocol,
        case.topology,
        case.fault,
        f"{run.metrics['lost']}" + (f" ({noticed})" if noticed else ""),
        " / ".join(_percent(part["reliability"]) for part in (figures, *parts)),
        " / ".join(f"{part['reliable_throughput']:,.0f}" for part in parts),
        f"{latency['p50']:.0f}" if latency else "",
        f"{cost:,.0f}" if cost is not None else "",
        ", ".join(run.verdict.guarantees.values()),
        {"yes": "kept", "no": "broken"}.get(run.verdict.kept, run.verdict.kept),
    )


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")


HEAD = (
    "protocol",
    "topology",
    "fault",
    "lost",
    "reliable %",
    "throughput",
    "latency",
    "cost ms",
    "at most, at least, exactly once",
    "promise",
)


def cases(asked: argparse.Namespace) -> Iterator[Case]:
    """All runs that were asked for."""
    for protocol in asked.protocols:
        for topology in asked.topologies:
            yield from (Case(protocol, topology, fault) for fault in asked.faults)


def main() -> None:
    """The whole table."""
    parser = parser_of(__doc__, "guarantees.md")
    parser.add_argument("--protocols", type=names, default=list(PROTOCOLS))
    parser.add_argument("--topologies", type=names, default=list(TOPOLOGIES))
    parser.add_argument("--faults", type=names, default=list(FAULTS))
    asked = parser.parse_args()
    if unknown := [fault for fault in asked.faults if fault not in FAULTS]:
        parser.error(f"no such fault: {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    session = Session()
    rows, witnesses, surprises = [], [], []
    spark = own_session(slots=2, spares=1)
    try:
        with tempfile.TemporaryDirectory() as runs:
            for case in cases(asked):
                run = measure(case, spark, Path(runs))
                rows.append(row(case, run))
                session.say(" ".join(map(str, rows[-1])))
                surprises += [f"{case}: {text}" for text in case.surprises(run)]
                if run.verdict.kept != "yes":
                    witnesses.append(
                        f"- {case.protocol}, {case.topology}, {case.fault}: {run.verdict.because}"
                    )
    finally:
        spark.stop()
    session.write(asked.to, "Guarantees under PGVal's faults", HOW, [table(HEAD, rows), witnesses])
    for text in surprises:
        session.say(f"NOT AS EXPECTED: {text}")
    sys.exit(1 if surprises else 0)


if __name__ == "__main__":
    call(main)
