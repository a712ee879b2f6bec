"""What things cost in the simulated world, in microseconds of virtual time.

A world that explores schedules has rough costs: a batch and its records take time, and all else is free.
A world that is a model of a machine has the costs of a profile besides (`scale`): CPU time for each kind
of work that a real slot counts, and cores that its slots share. By default that work is free, and every
slot has a core of its own.
"""

import random
from dataclasses import dataclass

from snapline.core.messages import Marker, Message
from snapline.ids import Micros


@dataclass(frozen=True, slots=True)
class Costs:
    """How long things take: slots have cores, each two slots a link, and all share one store."""

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

    cores: int | None = None  # that all slots share; None: each has one of its own
    dilution: int = (
        1  # for how many messages, records and bytes each simulated one stands, and pays
    )
    # CPU time of slots, by what a real slot counts.
    wake_us: float = 0.0  # to find something to do after a rest, and to come to rest again
    step_us: float = 0.0  # to take an input at all
    read_us: float = 0.0  # to make and read a record at a source
    message_us: float = 0.0  # to send a message and to take it, wherever it goes ...
    row_us: float = 0.0  # ... per record in it ...
    byte_us: float = 0.0  # ... per byte of its records ...
    header_us: float = 0.0  # ... if its protocol piggybacks something at all ...
    header_byte_us: float = 0.0  # ... and per byte of that
    frame_us: float = 0.0  # for all that goes to another slot: a message, a marker, credit
    log_us: float = 0.0  # per message that a sender logs ...
    log_byte_us: float = 0.0  # ... and per byte of it
    marker_us: float = 0.0  # to send a marker on a channel, and to take it
    write_us: float = 0.0  # to write a record at a sink
    capture_us: float = 0.0  # to take a checkpoint of a task at all ...
    capture_byte_us: float = 0.0  # ... and per byte of its snapshot
    restore_byte_us: float = 0.0  # per byte of a snapshot that is loaded and restored
    beat_us: float = 0.0  # for each heartbeat of a slot
    driver_beat_us: float = 0.0  # for each heartbeat of a slot, at the coordinator

    def sending_us(self, message: Message, logged: int) -> float:
        """CPU time of whoever sends a message, of which so many bytes are logged."""
        logging_us = self.log_us + self.log_byte_us * logged if logged else 0.0
        return self._passing_us(message) + self.dilution * logging_us

    def taking_us(self, message: Message) -> float:
        """CPU time of whoever takes a message and processes its records."""
        return self._passing_us(message) + self.dilution * self.row_us * message.batch.length

    def _passing_us(self, message: Message) -> float:
        """What a message costs each of the two sides: only what they pay together can be measured."""
        whole_us = self.message_us + self.byte_us * message.batch.nbytes
        if message.header:
            whole_us += self.header_us + self.header_byte_us * len(message.header)
        return 0.5 * self.dilution * whole_us

    def framing_us(self, payload: object) -> float:
        """CPU time of each side for something that goes to another slot; a marker stands for itself."""
        return 0.5 * self.frame_us * (1 if isinstance(payload, Marker) else self.dilution)

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
