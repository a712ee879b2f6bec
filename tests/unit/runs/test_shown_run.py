"""A run that is over shows itself: as a card in a notebook, and as a whole page."""

from dataclasses import asdict

from reported_runs import crashed_run
from snapline.rundir.directory import RunDirectory
from snapline.rundir.results import VERSION
from snapline.rundir.spec import Spec
from snapline.runs.finished import environment, open_run


def a_run(tmp_path):
    spec = asdict(Spec("q12", protocol="aligned"))
    directory = RunDirectory.create(tmp_path, "q12", "aligned", spec)
    result = {
        "version": VERSION,
        "kept": "yes",
        "because": "all is well",
        "problems": [],
        "faults": [],
        "guarantees": {"exactly-once": "yes"},
        "rows": {"results": 7},
        "metrics": crashed_run().metrics,
        "environment": environment(),
    }
    directory.write("result.json", result)
    return open_run(tmp_path, directory.name)


def test_a_notebook_shows_a_run_as_a_card(tmp_path):
    run = a_run(tmp_path)
    card = run.plot()
    assert run._repr_html_() == card._repr_html_() == card.html
    assert "all is well" in card.html
    assert run.name in card.html
    assert "<script" not in card.html
    assert "html" not in repr(card)  # elsewhere it does not fill the screen


def test_a_page_has_the_versions_with_which_the_run_was_driven(tmp_path):
    page = a_run(tmp_path).page()
    assert page.startswith("<!doctype html>")
    assert "<h3>Environment</h3>" in page
    assert environment()["python"] in page
    assert environment()["cores"] >= 1
