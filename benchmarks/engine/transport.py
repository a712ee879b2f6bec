"""How long a frame takes from one process to another.

Two processes, one connection over loopback, one loop each. The sender never has more than a megabyte
waiting. *moved*: one packet is sent again and again, and the receiver only counts. *whole*: every message
is made, packed, unpacked, and its number checked, as between slots. Printed are microseconds per frame,
the time that passed and the CPU time of each side, each the best of several rounds: on a busy machine only
the CPU times mean anything, and those are up to twice what they are on an idle one.

    python -m benchmarks.engine.transport [--rounds N] [--seconds S]
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
from snapline.net.connection import Connection
from snapline.net.framing import MESSAGE
from snapline.net.handshake import new_secret
from snapline.net.listener import Listener, dial
from snapline.net.loop import EventLoop
from snapline.runtime.wire.codec import Wire
from snapline.runtime.wire.control_messages import Heartbeat

CHANNEL = ChannelId("a/0>b/1")
WIRE = Wire([CHANNEL])
WAITING_BYTES_MAX = 1 << 20
BURST = 64  # frames between two polls


@dataclass
class Counter:
    """Takes frames; a word at the end of a round asks how many, and for the CPU time of this side."""

    pipe: Pipe
    unpacks: bool = False
    frames: int = 0
    cpu_s: float = 0.0
    over: bool = False

    def opened(self, connection: Connection) -> None:
        self.cpu_s = time.process_time()

    def received(self, connection: Connection, kind: int, body: bytes | memoryview) -> None:
        if kind != MESSAGE:
            self.pipe.send((self.frames, time.process_time() - self.cpu_s))
            self.unpacks = self.pipe.recv()
            self.frames, self.cpu_s = 0, time.process_time()
            return
        self.frames += 1
        if self.unpacks:
            frame = WIRE.unpack(kind, body)
            assert isinstance(frame, Frame)
            assert isinstance(frame.payload, Message)
            assert frame.payload.seq == self.frames

    def lost(self, connection: Connection, reason: str) -> None:
        self.over = True


def receive(pipe: Pipe, secret: bytes) -> None:
    loop, counter = EventLoop(), Counter(pipe)
    pipe.send(Listener(loop, secret, counter).address)
    while not counter.over:
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


def message(seq: int, batch: Batch) -> Frame:
    return Frame(CHANNEL, (1, 1, 1), Message(CHANNEL, seq, 1, batch, b"", seq))


@dataclass
class Sender:
    loop: EventLoop
    connection: Connection
    pipe: Pipe

    def round(self, batch: Batch, whole: bool, seconds: float) -> tuple[float, float, float]:
        """Microseconds per frame: elapsed, CPU of the sender, CPU of the receiver."""
        self.ask(whole)
        begin, cpu = time.perf_counter(), time.process_time()
        frames, packet = 0, WIRE.pack(message(1, batch))
        while time.perf_counter() - begin < seconds:
            for _ in range(BURST):
                frames += 1
                if whole:
                    packet = WIRE.pack(message(frames, batch))
                self.connection.send(packet)
            self.loop.poll(0)
            while self.connection.waiting_bytes > WAITING_BYTES_MAX:
                self.loop.poll()
        while self.connection.waiting_bytes:
            self.loop.poll()
        sender_s = time.process_time() - cpu
        count, receiver_s = self.ask(False)
        elapsed_s = time.perf_counter() - begin
        assert count == frames
        return 1e6 * elapsed_s / frames, 1e6 * sender_s / frames, 1e6 * receiver_s / frames

    def ask(self, unpacks: bool) -> tuple[int, float]:
        """How the last round was; what to do in the next one."""
        self.connection.send(WIRE.pack(Heartbeat(0)))
        self.loop.poll(0)
        answer: tuple[int, float] = self.pipe.recv()
        self.pipe.send(unpacks)
        return answer


def main() -> None:
    parser = argparse.ArgumentParser(description="Microseconds per frame between two processes.")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    pipe, other = multiprocessing.Pipe()
    secret = new_secret()
    process = multiprocessing.Process(target=receive, args=(other, secret), daemon=True)
    process.start()
    loop, silence = EventLoop(), Silence()
    connection = dial(loop, pipe.recv(), secret, silence)
    while not silence.is_open:
        loop.poll()
    sender = Sender(loop, connection, pipe)
    print("                 moved: us  sender  receiver   whole: us  sender  receiver")
    for records in (1, 10, 100, 1_000, 10_000):
        batch = Batch({f"c{k}": np.arange(records) for k in range(5)})
        figures: list[float] = []
        for whole in (False, True):
            rounds = [sender.round(batch, whole, options.seconds) for _ in range(options.rounds)]
            figures += [min(column) for column in zip(*rounds, strict=True)]
        print(
            "{:6} x 5 int64  {:9.1f}  {:6.1f}  {:8.1f}   {:9.1f}  {:6.1f}  {:8.1f}".format(
                records, *figures
            )
        )
    connection.close()
    process.join()


if __name__ == "__main__":
    main()
