"""A sweep without Spark: the runs are made up, and everything around them is real."""

import json
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import parquet

from snapline.cli.app import main
from snapline.errors import NotStarted
from snapline.experiments import sweep as sweeping
from snapline.experiments.capacity import Trial
from snapline.experiments.foreign_load import LoadReading, read_load
from snapline.experiments.sweep_directory import SweepDirectory

FILE = """
turns = 6
[base]
flow = "q12"
slots = 1
duration = "1s"
[matrix]
protocol = ["none", "aligned"]
"""


@dataclass
class MadeUp:
    """Stands for a run that is over."""

    name: str
    metrics: dict[str, Any]
    verdict: Any = field(default_factory=lambda: Verdict())


@dataclass
class Verdict:
    kept: str = "yes"
    because: str = "it is right"


class Session:
    def stop(self):
        pass


class World:
    """Plays Spark and the machine: counts runs, fails or is disturbed when told to."""

    def __init__(self, monkeypatch):
        self.made = []
        self.rates = []
        self.searched = []  #: protocols whose capacity was found
        self.foreign = []  #: shares of the next runs
        self.broken = set()  #: numbers of runs that fail
        self.removed = []
        monkeypatch.setattr(sweeping, "own_session", lambda slots: Session())
        monkeypatch.setattr(sweeping, "run", self.run)
        monkeypatch.setattr(sweeping, "read_load", lambda: self)
        monkeypatch.setattr(sweeping, "Prober", self.prober)
        monkeypatch.setattr(sweeping, "remove_run", lambda runs, name: self.removed.append(name))

    def prober(self, spec, session, runs, least_s):
        self.searched.append(spec.protocol)
        capacity = 10_000 if spec.protocol == "none" else 5_000
        return SimpleNamespace(
            spec=spec,
            start=lambda: 7_000,
            attempt=lambda rate: Trial(rate, () if rate <= capacity else ("too fast",)),
        )

    def foreign_share(self, later):
        return self.foreign.pop(0) if self.foreign else 0.0

    def run(self, spec, session, *, runs, watcher):
        self.made.append(spec.protocol)
        self.rates.append(spec.rate)
        number = len(self.made)
        if number in self.broken:
            raise NotStarted("no process started")
        noise = 1 + (number * 7 % 5) / 1_000
        rate = (1_000 if spec.protocol == "none" else 800) * noise
        return MadeUp(f"run-{number}", {"rate": {"read": rate, "written": rate}})


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "price.toml").write_text(FILE)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


def cells(tmp_path):
    return {file.name: file.read_bytes() for file in (tmp_path / "sweeps/price/cells").iterdir()}


def test_a_sweep_runs_compares_and_is_not_run_again(snapline, world, tmp_path):
    code, out, err = snapline("sweep", "price.toml")
    assert (code, len(world.made)) == (0, 18)
    said = [" ".join(line.split()) for line in out.splitlines()]
    assert any(line.startswith("records read, against protocol=none; noise floor") for line in said)
    assert any("protocol=aligned" in line and "% slower" in line for line in said), out
    assert "18 of 18 done" in err
    table = parquet.read_table(tmp_path / "sweeps/price/results.parquet").to_pylist()
    assert [row["protocol"] for row in table].count("none") == 12
    assert snapline("sweep", "price.toml")[0] == 0
    assert len(world.made) == 18


def test_a_sweep_that_was_cut_off_goes_on_and_keeps_what_it_has(snapline, world, tmp_path):
    world.broken = set(range(8, 19))
    code, _, err = snapline("sweep", "price.toml")
    assert (code, "failed: no process started" in err) == (3, True)
    kept = cells(tmp_path)
    assert len(kept) == 7
    # A cell whose file was cut off is as one without a file.
    victim = next(iter(kept))
    (tmp_path / "sweeps/price/cells" / victim).write_bytes(kept[victim][:50])
    world.broken = set()
    assert snapline("sweep", "price.toml")[0] == 0
    whole = cells(tmp_path)
    assert len(whole) == 18
    assert {n: whole[n] for n in kept if n != victim} == {n: kept[n] for n in kept if n != victim}


def test_a_disturbed_run_is_made_again_twice_at_most(snapline, world, tmp_path):
    world.foreign = [0.30, 0.02, 0.5, 0.2, 0.4]
    _, _, err = snapline("sweep", "price.toml", "--json")
    assert len(world.made) == 18 + 1 + 2
    assert world.removed == ["run-1", "run-5", "run-3"]
    assert "try 2: others used the machine" in err
    assert "while others used 20% of the machine" in err
    found = SweepDirectory(tmp_path / "sweeps/price").results()
    assert sorted((each["foreign"], each["attempt"]) for each in found)[-2:] == [
        (0.02, 2),
        (0.2, 2),
    ]


def test_capacities_are_found_once_and_kept(snapline, world, tmp_path):
    text = FILE.replace("turns = 6", "turns = 2").replace(
        "slots = 1", 'slots = 1\nrate = "80% of capacity"'
    )
    (tmp_path / "price.toml").write_text(text)
    out = snapline("sweep", "price.toml", "--dry-run")[1]
    assert "2 capacities have to be found, unless they are known: about 10 min each" in out
    world.broken = {4, 5, 6}
    _, _, err = snapline("sweep", "price.toml")
    assert "finding the capacity for protocol=" in err
    assert "records/s not sustained: too fast" in err
    world.broken = set()
    assert snapline("sweep", "price.toml")[0] == 0
    assert sorted(world.searched) == ["aligned", "none"]
    rates = {
        protocol: {r for p, r in zip(world.made, world.rates, strict=True) if p == protocol}
        for protocol in ("none", "aligned")
    }
    [fast], [slow] = rates["none"], rates["aligned"]
    assert 0.95 * 8_000 <= fast <= 8_000
    assert 0.95 * 4_000 <= slow <= 4_000
    found = SweepDirectory(tmp_path / "sweeps/price").results()
    assert {each["spec"]["rate"] for each in found} == {fast, slow}


def test_two_sweeps_at_once_are_refused(snapline, world, tmp_path):
    with SweepDirectory(tmp_path / "sweeps/price").claimed(FILE):
        code, _, err = snapline("sweep", "price.toml")
    assert (code, world.made) == (2, [])
    assert "another sweep writes to" in " ".join(err.split())
    assert snapline("sweep", "price.toml", "--to", "elsewhere")[0] == 0


def test_a_dry_run_starts_and_writes_nothing(snapline, world, tmp_path):
    code, out, _ = snapline("sweep", "price.toml", "--dry-run")
    assert (code, world.made, (tmp_path / "sweeps").exists()) == (0, [], False)
    assert "18 runs in 6 turns, 0 done; about 2 min left" in out
    document = json.loads(snapline("sweep", "price.toml", "--dry-run", "--json")[1])
    assert (document["runs"], document["done"]) == (18, 0)


def test_a_run_that_could_not_be_made_is_refused_before_the_first(snapline, world, tmp_path):
    (tmp_path / "price.toml").write_text(FILE.replace('"1s"', '"1s"\nfaults = "kill driver at=1s"'))
    code, _, err = snapline("sweep", "price.toml")
    assert (code, world.made) == (2, [])
    assert "protocol=none: a fault that kills the driver would end the sweep" in err


def test_columns_of_a_sweep_are_compared(snapline, world, tmp_path):
    snapline("sweep", "price.toml")
    code, out, _ = snapline(
        "compare", "sweeps/price:protocol=none", "sweeps/price:protocol=aligned"
    )
    assert code == 0
    assert "% slower" in out
    assert "6 pairs of runs" in out
    assert snapline("compare", "sweeps/price", "sweeps/price", "--threshold", "5%")[0] == 0
    for first, second, told in (
        ("sweeps/price", "run-1", "name two of a kind"),
        ("sweeps/price:hot=2", "sweeps/price", "hot does not vary"),
        ("sweeps/price:protocol", "sweeps/price", "a column is written as"),
        ("sweeps/price:protocol=hmnr", "sweeps/price", "no run with protocol=hmnr"),
        ("sweeps/price:protocol=none", "sweeps/price", "no run of the first"),
    ):
        code, _, err = snapline("compare", first, second)
        assert (code, told in " ".join(err.split())) == (2, True), err


def test_the_load_of_others_is_what_is_left_of_the_machine():
    before, later = LoadReading(100, 0, 1_000, 50), LoadReading(160, 10, 1_130, 90)
    assert before.foreign_share(later) == pytest.approx((60 + 10 - 40) / 200)
    assert before.foreign_share(before) == 0.0
    now = read_load()
    assert 0.0 <= now.foreign_share(read_load()) <= 1.0
    assert now.own > 0
