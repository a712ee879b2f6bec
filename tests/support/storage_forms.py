"""Every port in every form."""

import pytest

from snapline.runtime.counted_store import CountedStore
from snapline.sim.world.outlet import SimOutlet
from snapline.storage.files.log import FileLogs
from snapline.storage.files.outlet import FileOutlet
from snapline.storage.files.output import FileOutput
from snapline.storage.files.store import FileStore
from snapline.storage.files.trouble import Trouble, TroubledStore
from snapline.storage.memory import MemoryLogs, MemoryStore
from snapline.storage.memory_output import MemoryOutlet
from storage_harness import FileHarness, MemoryHarness

FORMS = ("memory", "files", "tiny-segments", "compressed")


class CompressedLogs(FileLogs):
    """Logs that are always compressed, however small their messages."""

    def open(self, life, *, compress=True):
        return super().open(life, compress=compress)


@pytest.fixture(params=("memory", "files", "troubled", "counted"))
def store(request, tmp_path):
    if request.param == "memory":
        return MemoryStore()
    if request.param == "counted":
        return CountedStore(MemoryStore())
    files = FileStore(tmp_path / "store")
    return (
        files if request.param == "files" else TroubledStore(files, Trouble(tmp_path / "trouble"))
    )


@pytest.fixture(params=FORMS)
def logs(request, tmp_path, monkeypatch):
    if request.param == "memory":
        yield MemoryHarness(MemoryLogs())
        return
    tiny = request.param == "tiny-segments"  # so small that nearly every message fills one
    size = 150 if tiny else 64 << 20
    form = CompressedLogs if request.param == "compressed" else FileLogs
    monkeypatch.setattr("snapline.storage.codec.PACKED_FROM", 0)
    harness = FileHarness(lambda path: form(path, size), tmp_path / "logs", not tiny)
    yield harness
    harness.close()


@pytest.fixture(params=("memory", "simulated", "files"))
def outlet(request, tmp_path):
    if request.param != "files":
        yield MemoryHarness(MemoryOutlet() if request.param == "memory" else SimOutlet())
        return
    harness = FileHarness(FileOutlet, tmp_path / "outlet", read=FileOutput)
    yield harness
    harness.close()
