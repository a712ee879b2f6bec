"""What is known of the machine on which runs are measured: as much as explains a figure later.

What cannot be read, because the system keeps it elsewhere or not at all, is None. Nothing here takes long:
it is written down with every run.
"""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROC, _CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
_SETTINGS = ("spark.master", "spark.scheduler.mode", "spark.driver.memory")
"""What of Spark's configuration can make a run faster or slower, and is not the same everywhere."""


def machine_facts(place: Path) -> dict[str, Any]:
    """The processors that may be used, who else asks for them, and the disk on which runs are kept."""
    return {
        "system": platform.platform(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "affinity": sorted(os.sched_getaffinity(0)),
        "quota_cores": _quota(),
        "steal": _steal(),
        "pressure": {what: _pressure(what) for what in ("cpu", "io", "memory")},
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "disk": _disk(place),
    }


@cache
def code_facts(package: Path) -> dict[str, Any]:
    """The commit of the code in a checkout, and whether it was changed since; None: nobody knows."""
    commit = _git(package, "rev-parse", "HEAD")
    changed = None if commit is None else _git(package, "status", "--porcelain", "--", ".")
    return {"commit": commit, "dirty": None if changed is None else bool(changed)}


def _git(place: Path, *arguments: str) -> str | None:
    try:
        command = ("git", "-C", str(place), *arguments)
        said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip()


def spark_facts(session: "SparkSession") -> dict[str, Any] | None:
    """The Java on which a session runs, and the settings of it that matter; None if nobody can say."""
    try:
        settings = session.sparkContext.getConf()
        java: Any = session.sparkContext._jvm
        version = str(java.java.lang.System.getProperty("java.version"))
    except AttributeError:  # it has no Java here
        return None
    return {"java": version, **{name: settings.get(name) for name in _SETTINGS}}


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _cpu() -> str:
    lines = (_read(_PROC / "cpuinfo") or "").splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _quota() -> float | None:
    """How many processors' worth of time this process may use; None: no group limits it."""
    said = (_read(_CGROUP / "cpu.max") or "max").split()
    if said[0] != "max":
        return round(int(said[0]) / int(said[1]), 2)
    first = _read(_CGROUP / "cpu/cpu.cfs_quota_us"), _read(_CGROUP / "cpu/cpu.cfs_period_us")
    quota, period = (int(each) if each else -1 for each in first)  # version 1 of control groups
    return round(quota / period, 2) if quota > 0 and period > 0 else None


def _steal() -> float | None:
    """The share of the CPU time since the machine was started that its host gave to others."""
    ticks = [int(each) for each in (_read(_PROC / "stat") or "").partition("\n")[0].split()[1:9]]
    whole = sum(ticks)
    return round(ticks[7] / whole, 4) if len(ticks) == 8 and whole else None


def _pressure(what: str) -> float | None:
    """The percentage of the last minute in which somebody had to wait for this."""
    said = (_read(_PROC / "pressure" / what) or "").partition("\n")[0].split()
    found = [each.partition("=")[2] for each in said if each.startswith("avg60=")]
    return float(found[0]) if found else None


def _disk(place: Path) -> dict[str, Any]:
    """The kind of file system on which a directory lies, and how much room is left there."""
    way = (place.absolute(), *place.absolute().parents)
    existing = next(path for path in way if path.exists()).resolve()
    mounts = [line.split()[1:3] for line in (_read(_PROC / "mounts") or "").splitlines()]
    above = [mount for mount in mounts if existing.is_relative_to(mount[0])]
    kind = max(above, key=lambda mount: len(mount[0]))[1] if above else None
    room = os.statvfs(existing)
    return {"kind": kind, "free_mb": room.f_bavail * room.f_frsize >> 20}
