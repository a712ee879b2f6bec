"""What things cost in the simulated world, in microseconds of virtual time."""

import random
from dataclasses import dataclass

from snapline.ids import Micros


@dataclass(frozen=True, slots=True)
class Costs:
    """How long things take: each slot has a CPU, each two slots a link, and all share one store."""

    batch_us: Micros = 300  # to process a batch at all ...
    record_us: Micros = 20  # ... and per record of it
    link_us: Micros = 400  # latency of a link, on average
    link_busy_us: Micros = 20  # a frame occupies its link for so long ...
    link_byte_us: float = 0.01  # ... and per byte
    control_us: Micros = 500  # between coordinator and slots
    store_us: Micros = 8_000  # one call to the store, on average ...
    store_byte_us: float = 0.01  # ... and per byte
    sync_us: Micros = 3_000  # one sync of a log or an egress
    detect_us: Micros = 5_000  # until a broken connection is noticed
    timeout_us: Micros = 250_000  # until a silent slot is given up
    lease_us: Micros = 400_000  # until a slot whose coordinator is silent gives up
    launch_us: Micros = 30_000  # until a new process of a slot registers
    register_us: Micros = 600_000  # until one that has not registered is given up
    again_us: Micros = 12_500  # before another one is started, doubled with each that fails ...
    again_max_us: Micros = 1_250_000  # ... up to this

    @staticmethod
    def draw(rng: random.Random) -> "Costs":
        """A world at random: some are quick, some have slow links, a slow store or slow slots."""
        return Costs(
            batch_us=rng.choice((100, 300, 2_000)),
            record_us=rng.choice((5, 50, 300)),
            link_us=rng.choice((100, 1_000, 8_000)),
            link_busy_us=rng.choice((5, 500, 25_000)),
            control_us=rng.choice((200, 2_000, 10_000)),
            store_us=rng.choice((1_000, 10_000, 40_000)),
            sync_us=rng.choice((500, 5_000, 20_000)),
            launch_us=rng.choice((5_000, 30_000, 120_000)),
        )
