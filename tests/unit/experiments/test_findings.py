"""Results that are kept, and the page of findings that is made of them."""

import json
import re
import sys
from pathlib import Path

import pytest

from snapline.cli.app import main
from snapline.errors import UsageError
from snapline.experiments.papers.catalogue import PAPERS, read_paper, read_shipped
from snapline.experiments.papers.findings import as_page, findings
from snapline.experiments.papers.kept import keep, paper_of_sweep, read_kept, written
from snapline.experiments.sweep_directory import SweepDirectory

ROOT = Path(__file__).parents[3]
PAPER = """
[paper]
title = "Restarts"
authors = "me"
year = 2026
settings = "two slots"
[metric.restart]
path = "restart_s"
[form.failure]
turns = 6
[form.failure.base]
flow = "q12"
duration = "14s"
faults = "kill slot=1 at=5s..+interval"
[form.failure.matrix]
protocol = ["aligned", "uncoordinated"]
[[figure]]
id = "fig1"
title = "time to restart"
varies = "protocol"
finding = "coordinated protocols restart faster"
quick = "failure"
claims = ["restart[aligned] < restart[uncoordinated]"]
explained = "logs are read"
[[figure]]
id = "fig2"
title = "on the moon"
varies = "gravity"
finding = "slower"
later = "it needs a moon"
"""
OURS = read_paper("restarts", PAPER)


def measured(path, paper=OURS, *, seconds=None, kept="yes", keys="right", skip=0):
    """A sweep of the paper with made-up results; restarts take longer without coordination."""
    seconds = seconds or {"aligned": 0.4, "uncoordinated": 0.6}
    directory = SweepDirectory(path)
    with directory.claimed(paper.text):
        for n, cell in enumerate(paper.figures["fig1"].quick.sweep().cells[skip:]):
            value = seconds[cell.spec.protocol] + cell.turn / 1000 + cell.column.again / 1e4
            said = cell.spec.said()
            if keys == "older":  # an earlier version did not know this argument yet
                del said["publish_lag"]
            result = {
                "turn": cell.turn,
                "again": cell.column.again,
                "varied": dict(cell.column.varied),
                "spec": said,
                "launcher": "spark",
                "run": f"run-{n}",
                "kept": kept,
                "because": "as the oracle says",
                "metrics": {"restart_s": [value]},
                "foreign": 0.01 if n else 0.2,
                "attempt": 1,
                "begun_s": 1_790_000_000 + n,
                "elapsed_s": 20.0,
                "environment": {"code": "c0de", "cores": 2, "cpu": "a fast one", "steal": n},
            }
            directory.write(cell.key("c0de") if keys == "right" else f"key{n}", result)
    return directory


def row_of(results, paper=OURS):
    [found] = findings(results, [paper])
    return found.board.rows[0]


def test_a_finished_sweep_is_kept_and_becomes_a_finding(tmp_path):
    [kept] = keep(OURS, measured(tmp_path / "sweep"), tmp_path / "results")
    assert (len(kept.runs), kept.planned) == (18, 18)
    assert kept.environment == {"code": "c0de", "cores": 2, "cpu": "a fast one"}
    assert kept.runs[3]["environment"] == {"steal": kept.runs[3]["metrics"] and 3}
    page = as_page(findings(tmp_path / "results", [OURS]))
    assert (
        "| **fig1** time to restart | **holds** | `snapline sweep restarts --figure fig1` |" in page
    )
    assert "18 runs, 1 of them while others used the machine" in page
    assert "on 2 cores (a fast one), code `c0de`" in page
    assert "*because:* logs are read" in page
    assert "| **fig2** on the moon | **cannot be tested here** |" in page
    assert "*why:* it needs a moon" in page


def test_what_was_measured_otherwise_does_not_hold(tmp_path):
    other = measured(tmp_path / "sweep", seconds={"aligned": 0.9, "uncoordinated": 0.6})
    keep(OURS, other, tmp_path)
    assert row_of(tmp_path).standing.value == "does not hold"


def test_results_whose_keys_are_made_otherwise_by_now_are_found_by_what_was_run(tmp_path):
    [kept] = keep(OURS, measured(tmp_path / "sweep", keys="older"), tmp_path)
    assert len(kept.runs) == 18
    assert row_of(tmp_path).standing.value == "holds"


def test_a_form_that_asks_for_other_runs_by_now_is_not_measured(tmp_path):
    keep(OURS, measured(tmp_path / "sweep"), tmp_path)
    changed = read_paper("restarts", PAPER.replace("14s", "20s"))
    row = row_of(tmp_path, changed)
    assert row.why.startswith("not measured yet; what is kept of failure was measured with other")
    with pytest.raises(UsageError, match="has no result of an experiment of restarts as it is now"):
        keep(changed, SweepDirectory(tmp_path / "sweep"), tmp_path)


def test_a_run_that_is_not_proved_right_and_runs_that_are_missing_are_told(tmp_path):
    keep(OURS, measured(tmp_path / "wrong", kept="no"), tmp_path)
    assert "is not proved right" in row_of(tmp_path).why
    keep(OURS, measured(tmp_path / "part", skip=2), tmp_path)
    assert "16 runs, of 18" in as_page(findings(tmp_path, [OURS]))


def test_equal_results_are_equal_bytes_and_are_read_back(tmp_path):
    [kept] = keep(OURS, measured(tmp_path / "sweep"), tmp_path)
    again = read_kept(tmp_path, "restarts", "failure")
    assert again is not None
    assert written(again) == (tmp_path / "restarts/failure.json").read_text() == written(kept)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", "it is not JSON"),
        ("[]", "is no file of results"),
        ('{"snapline_results": 9}', "of another version; this Snapline reads version 1"),
        ('{"snapline_results": 1, "paper": "a"}', "no whole file of results"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, text, why):
    (tmp_path / "restarts").mkdir()
    (tmp_path / "restarts/failure.json").write_text(text)
    with pytest.raises(UsageError, match=why):
        findings(tmp_path, [OURS])


def test_only_sweeps_of_shipped_papers_are_kept(tmp_path):
    measured(tmp_path / "own")
    with pytest.raises(UsageError, match="only their results are kept"):
        paper_of_sweep(tmp_path / "own")
    with pytest.raises(UsageError, match=r"no sweep: there is no sweep\.toml"):
        paper_of_sweep(tmp_path)


def test_the_page_of_this_repository_is_made_of_its_results():
    """Byte for byte, with a row and a command for every figure of every paper."""
    page = as_page(findings(ROOT / "results"))
    assert page == (ROOT / "docs/findings.md").read_text(), (
        "make it again: snapline findings --to docs/findings.md"
    )
    figures = [each for name in PAPERS for each in read_shipped(name).figures.values()]
    for figure in figures:
        command = re.compile(
            rf"`snapline sweep {re.escape(figure.name)}( --full)?( --profile .*)?`"
        )
        rows = [line for line in page.splitlines() if command.search(line)]
        assert len(rows) == 1, figure.name
        assert "--full" not in rows[0] or figure.quick != figure.full, "both are the same runs"


def test_the_command_keeps_writes_and_tells(tmp_path, monkeypatch, capsys):
    measured(tmp_path / "sweep", paper=read_paper("x", PAPER))
    monkeypatch.chdir(tmp_path)
    for arguments, code, told in (
        (["sweep"], 2, "only their results are kept"),
        (["--to", "page.md"], 0, "the page of findings: page.md"),
        (["--json"], 0, ""),
    ):
        monkeypatch.setattr(sys, "argv", ["snapline", "findings", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == code
        assert told in said.err
    assert len(json.loads(said.out)["papers"]) == len(PAPERS)
    assert (tmp_path / "page.md").read_text().startswith("# Findings")
