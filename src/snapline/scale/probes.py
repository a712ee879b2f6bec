"""Measures, each by itself, what no run can tell apart: store, disk, link, starts, generators, restores.

Every probe takes the median of some tries, and a second or two.
"""

import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.dataflow.deploy import Deployment, TaskPlan
from snapline.dataflow.operators.operator import IN, Capture
from snapline.ids import ChannelId, TaskId
from snapline.protocols.none import NONE
from snapline.rundir.program import build_job, find_program
from snapline.rundir.spec import Spec
from snapline.runtime.launch.processes import PROGRAM
from snapline.storage.api import Life
from snapline.storage.codec import decode_snapshot, encode_snapshot
from snapline.storage.files.storage import FileStorage

TRIES: Final = 15
STARTS: Final = 3
SMALL, LARGE = 1_000, 4_000_000
RECORDS: Final = 4_000
_ADDRESS: Final = ("127.0.0.1", 0)


def _times_us(act: Callable[[int], object], tries: int = TRIES) -> float:
    """The median time that something takes; it is told which try this is."""
    found = []
    for number in range(tries):
        begun = time.perf_counter()
        act(number)
        found.append((time.perf_counter() - begun) * 1e6)
    return median(found)


def store_costs(place: Path | None = None) -> Mapping[str, float]:
    """What a call to the store takes, and per byte; and a sync of a log."""
    with tempfile.TemporaryDirectory(prefix="snapline-probe-", dir=place) as folder:
        for name in ("store", "logs", "output"):
            (Path(folder) / name).mkdir()
        storage = FileStorage(Path(folder))
        small = _times_us(lambda n: storage.store.put(f"small/{n}", bytes(SMALL)))
        large = _times_us(lambda n: storage.store.put(f"large/{n}", bytes(LARGE)), 5)
        log = storage.logs.open(Life(TaskId("probe/0"), 1, 1))
        batch = Batch({"a": np.arange(100)}, 100)

        def append(number: int) -> None:
            log.append(Message(ChannelId("probe/0>probe/1"), number + 1, 1, batch, b"", None))
            log.sync()

        synced = _times_us(append)
        log.close()
    per_byte = max(0.0, (large - small) / (LARGE - SMALL))
    return {"store_us": small, "store_byte_us": per_byte, "sync_us": synced}


def link_costs() -> Mapping[str, float]:
    """Latency and bandwidth of a connection on this machine, with somebody else at its other end."""
    with socket.create_server(_ADDRESS) as server:
        other = threading.Thread(target=_echo, args=(server,), daemon=True)
        other.start()
        with socket.create_connection(server.getsockname()) as near:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            there_and_back = _times_us(lambda n: _ask(near, SMALL), 200)
            large = _times_us(lambda n: _ask(near, LARGE), 5)
        other.join()
    per_byte = max(0.0, (large - there_and_back) / 2 / (LARGE - SMALL))
    return {"link_us": there_and_back / 2, "link_busy_us": 1.0, "link_byte_us": per_byte}


def _ask(near: socket.socket, size: int) -> None:
    """Send so many bytes and wait until they have come back."""
    near.sendall(size.to_bytes(8, "little") + bytes(size))
    _take(near, size)


def _echo(server: socket.socket) -> None:
    near, _ = server.accept()
    with near:
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while head := near.recv(8, socket.MSG_WAITALL):
            size = int.from_bytes(head, "little")
            _take(near, size)
            near.sendall(bytes(size))


def _take(near: socket.socket, size: int) -> None:
    while size:
        size -= len(near.recv(min(size, 1 << 20)))


def launch_us() -> float:
    """How long the process of a slot takes until it could register, with its compiled kernels."""
    imports = PROGRAM.partition("SlotProcess(")[0]
    program = f"from snapline.kernels import cache\ncache.load()\n{imports}"
    command = [sys.executable, "-c", program]
    return _times_us(
        lambda n: subprocess.run(command, check=True, stdin=subprocess.DEVNULL), STARTS
    )


def generator_us(workload: str) -> float:
    """CPU time to make one record of a workload."""
    spec = Spec(workload, protocol=NONE.name, slots=1, rate=100_000, duration_ms=2_000)
    plans = build_job(spec, find_program(spec)).deployment.plans.values()
    sources = [plan.ingress for plan in plans if plan.ingress is not None]
    shares = [source.due_through(0, 1_000) for source in sources]

    def read(number: int) -> None:
        for source, share in zip(sources, shares, strict=True):
            count = max(1, RECORDS * share // sum(shares))
            at = number * count % max(1, share - count)
            source.read(0, at, at + count)

    return _times_us(read) / RECORDS


def restore_us(workload: str) -> float:
    """CPU time to read a snapshot and to restore it, per byte of it: of the task that takes longest."""
    spec = Spec(workload, protocol=NONE.name, slots=1, rate=100_000, duration_ms=2_000)
    deployment = build_job(spec, find_program(spec)).deployment
    tasks = [p for p in deployment.plans.values() if p.stateful and p.ingress is None]
    return max((_restoring_us(deployment, plan) for plan in tasks), default=0.0)


def _restoring_us(deployment: Deployment, plan: TaskPlan) -> float:
    operator = plan.operator()
    for channel in deployment.topology.inputs[plan.task]:
        source = deployment.plans[channel.source]
        if source.ingress is not None:
            made = source.ingress.read(0, 0, source.ingress.due_through(0, 1_000))
            for _, batch in source.operator().process(IN, made):
                operator.process(channel.port, batch)
    data = bytes(encode_snapshot(True, operator.capture(full=True).parts, b"", ()))

    def restore(number: int) -> None:
        found = decode_snapshot(data)
        plan.operator().restore([Capture(found.full, found.parts)])

    return _times_us(restore) / len(data)
