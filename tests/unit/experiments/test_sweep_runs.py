"""A sweep without Spark: the runs are made up, and everything around them is real."""

import json

import pytest
from pyarrow import parquet

from made_up_sweeps import FILE, MadeUp, snapline, world
from snapline.experiments import sweep as sweeping
from snapline.experiments.rates.probing import PATIENT
from snapline.experiments.sweep_directory import SweepDirectory

__all__ = ["snapline", "world"]


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
    assert "2 capacities have to be found first: protocol=none, protocol=aligned" in out
    assert "about 15 min left in all" in out
    world.broken = {4, 5, 6}
    _, _, err = snapline("sweep", "price.toml")
    assert "finding the capacity for protocol=" in err
    assert "records/s not sustained: too fast" in err
    assert "try 1: 7,000 records/s for 20 s; about 4 min left" in err
    assert "measured, 10 of 20 s: 7,000 records/s read, backlog 0" in err
    first = err.partition("try 1:")[2].partition("try 2:")[0]
    numbers = [line for line in first.splitlines() if "records/s read" in line]
    assert [line.split()[1:4] for line in numbers] == [
        *(["warm-up,", "5", "of"], ["measured,", "10", "of"]),
        *(["measured,", "15", "of"], ["measured,", "20", "of"]),
    ]
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
    assert "18 runs in 6 turns, 0 done; about 2 min left in all" in out
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


def test_the_ratios_so_far_are_said_after_every_turn(snapline, world, tmp_path):
    _, _, err = snapline("sweep", "price.toml")
    said = [line[9:] for line in err.splitlines() if "so far" in line]
    assert [line.partition(":")[0] for line in said] == [
        f"so far, after turn {turn}" for turn in range(1, 7)
    ]
    told = "protocol=aligned against protocol=none: records read x 0.80"
    assert all(line.endswith(told) for line in said), said
    assert "0 of 18 runs done, about 2 min left" in err


def test_times_that_were_drawn_are_said_and_kept(snapline, world, tmp_path):
    drawn = FILE.replace('"1s"', '"1s"\nfaults = "kill slot=0 at=200ms..700ms"')
    (tmp_path / "price.toml").write_text(drawn)
    _, _, err = snapline("sweep", "price.toml")
    found = SweepDirectory(tmp_path / "sweeps/price").results()
    by_turn = {}
    for each in found:
        by_turn.setdefault(each["turn"], set()).add(each["spec"]["faults"])
    assert all(len(faults) == 1 for faults in by_turn.values())
    assert len(set(map(tuple, by_turn.values()))) == 6
    [first] = by_turn[1]
    assert f"turn 1: protocol=none ({first})" in err


def test_a_sweep_of_processes_needs_no_spark(snapline, world, tmp_path, monkeypatch):
    made = []

    def carried_out(prepared, timeouts, watcher):
        made.append((type(prepared.launcher).__name__, timeouts))
        return MadeUp("run", {"rate": {"read": 1.0, "written": 1.0}})

    monkeypatch.setattr(sweeping, "carry_out_run", carried_out)
    monkeypatch.setattr(sweeping, "own_session", lambda slots: pytest.fail("Spark was started"))
    (tmp_path / "price.toml").write_text('launcher = "processes"\n' + FILE)
    assert snapline("sweep", "price.toml")[0] == 0
    assert made == [("ProcessSlots", PATIENT)] * 18
    found = SweepDirectory(tmp_path / "sweeps/price").results()
    assert {each["launcher"] for each in found} == {"processes"}
    assert {each["environment"]["spark"] for each in found} == {None}


def test_a_result_says_on_what_machine_it_was_measured(snapline, world, tmp_path):
    snapline("sweep", "price.toml")
    facts = SweepDirectory(tmp_path / "sweeps/price").results()[0]["environment"]
    assert facts["cores"] == len(facts["affinity"]) >= 1
    assert facts["disk"]["free_mb"] > 0
    assert set(facts["pressure"]) == {"cpu", "io", "memory"}
    assert {"cpu", "quota_cores", "steal", "memory_mb", "code", "pyspark", "python"} <= set(facts)
    assert len(json.dumps(facts)) < 2_000


def test_who_promises_nothing_has_broken_nothing(snapline, world, monkeypatch):
    def kept(by_protocol):
        def run(spec, session, *, runs, watcher):
            made = world.run(spec, session, runs=runs, watcher=watcher)
            made.verdict.kept = by_protocol[spec.protocol]
            return made

        monkeypatch.setattr(sweeping, "run", run)

    kept({"none": "unknown", "aligned": "yes"})
    code, out, _ = snapline("sweep", "price.toml")
    assert (code, "nobody knows" in out) == (0, False)
    kept({"none": "unknown", "aligned": "unknown"})
    assert snapline("sweep", "price.toml", "--to", "doubtful")[0] == 3
    kept({"none": "no", "aligned": "yes"})
    assert snapline("sweep", "price.toml", "--to", "wrong")[0] == 3
