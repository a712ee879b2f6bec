"""What protocols cost: records per second of q12 under each of them, relative to `none`, by size of batch.

    python -m benchmarks.engine.prices --protocols none,aligned,hmnr --batches 4000,100 --repeats 5
    python -m benchmarks.engine.prices --protocols uncoordinated,hmnr --batches 4000      # in short

A message is a batch, and a protocol works per message: with large batches its price is spread over many
records, with `batch.max_records` = 1 it is what the papers measure, where every record is a message.
Neither sources nor slots put more records together than that. For each size all protocols take turns,
`none` first, and a ratio is that of two runs of the same turn. A first run tells how much input a run
needs, and does not count. Every run is judged: the number of rows and their checksum.
"""

import argparse
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from benchmarks.common import kernels, real_run, snapline_side
from benchmarks.common.pages import Session, call, names, numbers, parser_of, table, with_spread
from benchmarks.common.snapline_side import judged, load_of
from snapline.engine.job import Settings
from snapline.protocols import PROTOCOLS

BASE = "none"
QUERY = "q12"
PILOT_BATCHES = 2_000
PILOT_RECORDS_MAX = 1_000_000
HOW = (
    "Two slots as plain processes, the sink counts. Ratios of records per second to those of `none` in the",
    "same turn: **median** (lowest to highest). CPU: microseconds of all slots for a batch of so many",
    "records, and header bytes (what a protocol piggybacks) per input record, medians. All outputs were",
    "right.",
)


@dataclass(frozen=True)
class Cost:
    """One run."""

    rate: float  # records per second
    us: float  # of CPU, for one batch
    header_bytes: float  # per record
    log_bytes: float  # per record


Costs = dict[int, dict[str, list[Cost]]]
"""By size of batch and protocol, one a turn."""


def measure(batch: int, protocol: str, records: float, asked: argparse.Namespace) -> Cost:
    """One run of q12, judged."""
    load = load_of(QUERY, records, asked.slots)
    settings = Settings(batch_max_records=batch, batch_growth=1)
    run = snapline_side.run(
        load, protocol=protocol, interval_ms=asked.interval_ms, settings=settings
    )
    judged(load, run)
    return Cost(
        run.rate,
        run.done.us_per_batch * batch / real_run.BATCH,
        run.done.volume.headers / load.records,
        run.done.volume.log / load.records,
    )


def measure_all(session: Session, asked: argparse.Namespace) -> Costs:
    """All protocols, in turns, for each size of batch."""
    costs: Costs = {batch: defaultdict(list) for batch in asked.batches}
    for batch in asked.batches:
        pilot = min(PILOT_BATCHES * batch, PILOT_RECORDS_MAX)
        needed = measure(batch, BASE, pilot, asked).rate * asked.seconds
        session.say(f"-  batches of {batch}: {needed:,.0f} records a run")
        for turn in range(asked.repeats):
            for protocol in asked.protocols:
                found = measure(batch, protocol, needed, asked)
                costs[batch][protocol].append(found)
                session.say(
                    f"{turn + 1}  {batch:>5} {protocol:<15} {found.rate:>12,.0f} rec/s  "
                    f"{found.us:>7,.0f} us/batch  {found.header_bytes:6.1f} B/rec, right"
                )
    return costs


def price_table(costs: Costs) -> list[str]:
    """Ratios to `none`, a column for each size of batch."""
    rows = []
    for protocol in next(iter(costs.values())):
        cells = [f"`{protocol}`"]
        for found in costs.values():
            pairs = zip(found[protocol], found[BASE], strict=True)
            cells.append(with_spread([one.rate / base.rate for one, base in pairs]))
        rows.append(cells)
    rows[0] = [f"`{BASE}`, rec/s", *map(_absolute, costs.values())]
    return table([QUERY, *(f"batches of {batch:,}" for batch in costs)], rows)


def _absolute(found: dict[str, list[Cost]]) -> str:
    rates = [cost.rate for cost in found[BASE]]
    return f"{median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"


def work_table(costs: Costs) -> list[str]:
    """CPU time and bytes, a row for each protocol."""
    head = ["protocol"]
    for batch in costs:
        head += [f"us per batch of {batch:,}", "header B/rec"]
    rows = []
    for protocol in next(iter(costs.values())):
        cells = [f"`{protocol}`"]
        for found in costs.values():
            cells.append(f"{median(cost.us for cost in found[protocol]):,.0f}")
            cells.append(f"{median(cost.header_bytes for cost in found[protocol]):.2f}")
        logged = median(cost.log_bytes for cost in next(iter(costs.values()))[protocol])
        rows.append([*cells, f"{logged:.0f}"])
    return table([*head, "log B/rec"], rows)


def main() -> None:
    parser = parser_of(__doc__, "prices.md")
    parser.add_argument("--protocols", type=names, default=[*PROTOCOLS], help="all, unless said")
    default = real_run.SETTINGS.batch_max_records
    parser.add_argument("--batches", type=numbers, default=[default, 100, 10, 1])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of each run, about")
    parser.add_argument("--slots", type=int, default=2, help="and cores")
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between checkpoints")
    kernels.add_option(parser)
    asked = parser.parse_args()
    if unknown := set(asked.protocols) - set(PROTOCOLS):
        parser.error(f"protocols are {', '.join(PROTOCOLS)}, not {', '.join(unknown)}")
    asked.protocols = [BASE, *(name for name in asked.protocols if name != BASE)]
    chosen = kernels.choose(asked)
    session = Session(cores=asked.slots)
    costs = measure_all(session, asked)
    how = [f"Turns: {asked.repeats}; checkpoints every {asked.interval_ms} ms; {chosen}.", *HOW]
    session.write(asked.to, "What protocols cost", how, [price_table(costs), work_table(costs)])


if __name__ == "__main__":
    call(main)
