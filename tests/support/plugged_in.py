"""Installs, for one test, the distribution that stands in `plug_in`, or one that a test writes."""

from pathlib import Path

import pytest

from snapline.protocols import PROTOCOLS
from snapline.systems.registry import SYSTEMS
from snapline.workload import WORKLOADS

PLUG_IN = Path(__file__).parent / "plug_in"


def install(monkeypatch: pytest.MonkeyPatch, path: Path = PLUG_IN) -> None:
    """Let this process and those that it starts find the distribution in a directory."""
    monkeypatch.syspath_prepend(path)
    monkeypatch.setenv("PYTHONPATH", str(path))
    for catalogue in (PROTOCOLS, WORKLOADS, SYSTEMS):
        monkeypatch.setattr(catalogue, "_found", None)  # as in a process that has not looked yet
        monkeypatch.setattr(catalogue, "_loaded", {})


def write_distribution(path: Path, name: str, module: str, code: str, points: str) -> Path:
    """A distribution with one module and these entry points; the directory in which it lies."""
    info = path / f"{name}-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(points)
    (path / f"{module}.py").write_text(code)
    return path
