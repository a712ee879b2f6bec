"""How long a frame takes from one process to another, packed, sent, received and unpacked.

Two processes, one connection over loopback, one loop each. The sender packs the same message again and
again and never has more than a megabyte waiting; the receiver unpacks every frame and checks its number.
Printed are, per frame, the time that passed and the CPU time of each side, the best of several rounds:
on a busy machine only the CPU times mean anything.

    python benchmarks/transport.py [--rounds N] [--seconds S]
"""

import argparse
import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.engine.control import Frame
from snapline.ids import ChannelId
from snapline.runtime.transport import Connection, Listener, Loop, dial, new_secret
from snapline.runtime.wire import Wire
from snapline.runtime.words import Heartbeat

CHANNEL = ChannelId("a/0>b/1")
WAITING_BYTES_MAX = 1 << 20


@dataclass
class Sums:
    """Takes frames; a Heartbeat at the end asks for the CPU time that they took."""

    pipe: Pipe
    seq: int = 0
    cpu_s: float = 0.0
    over: bool = False

    def __post_init__(self) -> None:
        self.wire = Wire([CHANNEL])

    def opened(self, connection: Connection) -> None:
        self.cpu_s = time.process_time()

    def received(self, connection: Connection, kind: int, body: bytes | memoryview) -> None:
        item = self.wire.unpack(kind, body)
        if isinstance(item, Heartbeat):
            self.pipe.send((self.seq, time.process_time() - self.cpu_s))
            self.seq, self.cpu_s = 0, time.process_time()
        else:
            assert isinstance(item, Frame)
            assert isinstance(item.payload, Message)
            self.seq += 1
            assert item.payload.seq == self.seq

    def lost(self, connection: Connection, reason: str) -> None:
        self.over = True


def receive(pipe: Pipe, secret: bytes) -> None:
    loop = Loop()
    sums = Sums(pipe)
    pipe.send(Listener(loop, secret, sums).address)
    while not sums.over:
        loop.poll()


class Silence:
    """Nothing comes back on this connection."""

    is_open = False

    def opened(self, connection: Connection) -> None:
        self.is_open = True

    def received(self, connection: Connection, kind: int, body: bytes | memoryview) -> None:
        raise AssertionError(kind)

    def lost(self, connection: Connection, reason: str) -> None:
        raise AssertionError(reason)


def one_round(
    loop: Loop, connection: Connection, pipe: Pipe, batch: Batch, seconds: float
) -> tuple[float, float, float]:
    """Microseconds per frame: elapsed, sender's CPU, receiver's CPU."""
    wire = Wire([CHANNEL])
    begin, cpu = time.perf_counter(), time.process_time()
    seq = 0
    while time.perf_counter() - begin < seconds:
        for _ in range(64):
            seq += 1
            frame = Frame(CHANNEL, (1, 1, 1), Message(CHANNEL, seq, 1, batch, b"", seq))
            connection.send(wire.pack(frame), frame)
        loop.poll(0)
        while connection.waiting_bytes > WAITING_BYTES_MAX:
            loop.poll()
    connection.send(wire.pack(Heartbeat(seq)))
    while connection.waiting_bytes:
        loop.poll(0.01)
    sender_cpu = time.process_time() - cpu
    count, receiver_cpu = pipe.recv()
    elapsed = time.perf_counter() - begin
    assert count == seq
    return tuple(1e6 * each / seq for each in (elapsed, sender_cpu, receiver_cpu))  # type: ignore


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    pipe, other = multiprocessing.Pipe()
    secret = new_secret()
    process = multiprocessing.Process(target=receive, args=(other, secret), daemon=True)
    process.start()
    loop, silence = Loop(), Silence()
    connection = dial(loop, pipe.recv(), secret, silence)
    while not silence.is_open:
        loop.poll()
    print("records  frame bytes  us/frame  sender CPU  receiver CPU  records/s")
    for records in (1, 10, 100, 1_000, 10_000):
        batch = Batch({f"c{k}": np.arange(records) for k in range(5)})
        frame = Frame(CHANNEL, (1, 1, 1), Message(CHANNEL, 1, 1, batch))
        size = Wire([CHANNEL]).pack(frame).size
        rounds = [
            one_round(loop, connection, pipe, batch, options.seconds) for _ in range(options.rounds)
        ]
        elapsed, sender, receiver = (min(column) for column in zip(*rounds, strict=True))
        rate = 1e6 / elapsed * records
        print(
            f"{records:7}  {size:11}  {elapsed:8.1f}  {sender:10.1f}  {receiver:12.1f}  {rate:9.3g}"
        )
    connection.close()
    process.join()


if __name__ == "__main__":
    main()
