"""A figure from its file to its verdict, by real runs as plain processes."""

import json
import sys

import pytest

from snapline.cli.app import main
from snapline.experiments import sweep

FILE = """
[paper]
title = "One figure"
authors = "nobody"
year = 2026
settings = "one slot"
[form.short]
turns = 1
launcher = "processes"
[form.short.base]
flow = "counting"
slots = 1
rate = 500
duration = "1s"
interval = "200ms"
[form.short.matrix]
protocol = ["aligned", "none"]
[[figure]]
id = "fig1"
title = "checkpoints"
varies = "protocol"
finding = "only one of the two takes any"
quick = "short"
claims = [
    "checkpoints.stored[aligned] > checkpoints.stored[none]",
    "records_read[aligned] >= records_read[none]",
    "miracles[aligned] > 0",
]
"""


def test_a_figure_is_measured_and_judged(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.toml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "FOREIGN_MAX", 1.0)  # others may use the machine
    monkeypatch.setattr(sys, "argv", ["snapline", "sweep", "mine.toml", "--json"])
    with pytest.raises(SystemExit) as left:
        main()
    document = json.loads(capsys.readouterr().out)
    [row] = document["rows"]
    assert left.value.code == 0, row
    assert [claim["verdict"] for claim in row["claims"]] == [
        "indicated",
        "indicated",
        "cannot be tested here",
    ]
    [last] = row["claims"][2]["comparisons"]
    assert last["why"] == "miracles is not measured"
    assert row["slots_are"] == "processes"
    assert (tmp_path / "sweeps/mine/results.parquet").is_file()
