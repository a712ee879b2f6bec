"""The runs of a comparison, in turns: all input at once, and at fixed rates."""

import argparse
from dataclasses import replace

from benchmarks.common.pages import Session
from benchmarks.common.snapline_side import load_of, paced
from benchmarks.compare import sides
from benchmarks.compare.figures import Figure, Record
from benchmarks.compare.neighbour import beside
from benchmarks.compare.sides import System, Systems
from benchmarks.native import native_peer

WHERE = {"spark": sides.ON_SPARK, "processes": sides.IN_PROCESSES, "egress": sides.EGRESS}
PILOT_RECORDS = 2_000_000
LATENCY_WARM_MS = 5_000


def half_of(session: Session, systems: Systems, asked: argparse.Namespace) -> float:
    """Half of what Snapline takes of q12 when all input is due at once, with the egress log."""
    system = systems.ours(asked.latency_protocols[0], sides.EGRESS)
    needed = float(PILOT_RECORDS)
    for _ in range(3):  # the first ones warm up Spark
        load = load_of("q12", needed, asked.slots)
        rate = system.run(load).rate
        needed = max(rate * asked.seconds, PILOT_RECORDS)
    session.say(f"-  q12, {system.name}: takes {rate:,.0f} rec/s")
    return rate / 2


def compared_in_rates(systems: Systems, asked: argparse.Namespace) -> list[System]:
    """What runs with all input due at once."""
    compared = []
    if "throughput" in asked.parts:
        compared += [
            systems.ours(protocol, WHERE[where])
            for protocol in asked.protocols
            for where in asked.systems
            if where in WHERE
        ]
        if "flink" in asked.systems:
            compared.append(systems.flink(sides.REUSE, reuse=True))
            compared.append(systems.flink(sides.COPY, reuse=False))
    if "anchors" in asked.parts and native_peer.missing() is None:
        compared += [systems.anchor(name) for name in sides.ANCHORS]
    return compared


def throughput(
    session: Session, record: Record, systems: Systems, asked: argparse.Namespace
) -> None:
    """Records per second, measured in turns."""
    compared = compared_in_rates(systems, asked)
    loads = {}
    for query in asked.queries:
        for system in compared:
            pilot = system.run(load_of(query, PILOT_RECORDS, asked.slots))
            needed = min(pilot.rate * asked.seconds * system.needs, system.most)
            load = load_of(query, max(needed, PILOT_RECORDS), asked.slots)
            loads[query, system.name] = load
            session.say(f"-  {query:<4} {system.name:<40} takes {load.records:,} records")
    for turn in range(asked.repeats):
        for query in asked.queries:
            for system in compared:
                found = replace(system.run(loads[query, system.name]), turn=turn)
                record.add(found)
                session.say(
                    f"{turn + 1}  {query:<4} {system.name:<40} {found.rate / 1e6:7.2f} M rec/s of "
                    f"{found.records / 1e6:.1f} M, {found.cpu_s:.1f} CPU s in {found.cpu_seconds:.1f} "
                    f"s, {found.rss / 1e6:,.0f} MB, {found.checkpoints} checkpoints, right"
                )


def latency(
    session: Session,
    record: Record,
    systems: Systems,
    asked: argparse.Namespace,
    paces: dict[str, float],
    slots: int,
) -> None:
    """CPU and latencies of q12 at fixed rates, measured in turns."""
    warm_ms = LATENCY_WARM_MS
    ours = [systems.ours(name, sides.ON_SPARK, warm_ms) for name in asked.latency_protocols]
    if "flink" in asked.systems:
        ours.append(systems.flink(sides.buffered(1), reuse=True, buffer_ms=1, warm_ms=warm_ms))
    default = systems.flink(sides.buffered(100), reuse=True, buffer_ms=100, warm_ms=warm_ms)
    for turn in range(asked.repeats):
        for pace, rate in paces.items():
            load = paced("q12", rate, asked.seconds + warm_ms / 1000, slots)
            for neighbour in asked.neighbour:
                quiet = neighbour == "quiet" and "flink" in asked.systems and slots == asked.slots
                for system in [*ours, *([default] if quiet else [])]:
                    with beside(neighbour):
                        found = system.run(load)
                    found = replace(found, turn=turn, rate=rate, pace=pace, neighbour=neighbour)
                    record.add(found)
                    session.say(f"{turn + 1}  {told(found)}")


def told(found: Figure) -> str:
    """A run at a rate, in one line."""
    return (
        f"{found.rate:>11,.0f} rec/s {found.slots:>2} slots {found.neighbour} {found.system:<34} "
        f"{found.cpu_s / found.cpu_seconds:.2f} CPU s per s, p50 {found.p50_ms:6.1f}, p99 "
        f"{found.p99_ms:6.1f} ms, right"
    )
