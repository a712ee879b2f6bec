"""What a program sees of a run while it goes on: lines, or in a notebook a card that is drawn anew."""

import sys
from types import SimpleNamespace

import pytest

import snapline as sl
from snapline.api import _listening
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.happenings import JobFinished, JobRunning, SlotLost
from snapline.metrics.second import Second
from snapline.runs.listener import Listening

SPEC = {"flow": "q12", "rate": 2_000, "duration_ms": 10_000}


class Driver:
    """Stands for the driver of a run that begins."""

    def __init__(self, **spec):
        self.directory = SimpleNamespace(
            name="q12-aligned-calm-reed", spec=lambda: {**SPEC, **spec}
        )


class Kernel:
    """Stands for IPython in the process of a notebook."""

    def __init__(self, kernel=True):
        self.shown, self.updates = [], 0
        self.kernel = object() if kernel else None
        self.display = SimpleNamespace(display=self.show)

    def get_ipython(self):
        return self

    def show(self, what, *, display_id):
        assert display_id is True
        self.shown.append(what)
        return self

    def update(self, what):
        self.updates += 1
        self.shown[-1] = what


def live(watcher, **spec):
    """A run of ten seconds with a loss, as its driver tells it."""
    watcher.begins(Driver(**spec))
    watcher.event(Happened(0, COORDINATOR, 1, JobRunning()))
    for at_s in range(10):
        watcher.second(Second(at_s, running=2, read=2_000, written=1_990, backlog=5, p99_ms=12.5))
        if at_s == 3:
            watcher.event(Happened(3_200_000, COORDINATOR, 1, SlotLost(1, 1)))
    watcher.event(Happened(10_000_000, COORDINATOR, 2, JobFinished()))
    watcher.ended(None, "yes")


@pytest.fixture
def notebook(monkeypatch):
    kernel = Kernel()
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    return kernel


def test_a_plain_program_that_asks_for_it_gets_lines_with_an_end(capsys):
    live(sl.Progress())
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    numbers = [line for line in lines if "records/s" in line]
    assert [line.split(";")[1] for line in numbers] == [" 5 of 10 s", " 10 of 10 s"]
    assert "2,000 records/s read, backlog 5, p99 12 ms" in numbers[0]
    assert any("slot/1 as lost" in line for line in lines)
    assert lines[-1] == "q12-aligned-calm-reed: its output is right"
    assert "\x1b" not in told.err


def test_who_does_not_ask_sees_nothing_outside_of_a_notebook(capsys, monkeypatch):
    live(_listening(None, None))
    live(sl.Progress(quiet=True))
    monkeypatch.setitem(sys.modules, "IPython", Kernel(kernel=False))  # IPython in a terminal
    live(_listening(None, None))
    assert capsys.readouterr() == ("", "")


def test_a_notebook_gets_one_card_that_is_drawn_anew(notebook, capsys):
    live(_listening(None, None))
    assert capsys.readouterr() == ("", "")
    [last] = notebook.shown
    assert notebook.updates >= 12
    assert repr(last) == "q12-aligned-calm-reed: its output is right"
    html = last._repr_html_()
    assert 'class="verdict yes"' in html
    assert "slot/1 as lost" in html
    assert 'aria-label="10 of 10 s"' in html
    assert "<svg" in html
    assert len(html) < 60_000


def test_a_notebook_shows_nothing_to_who_says_so_or_watches_himself(notebook):
    live(_listening(sl.Progress(quiet=True), None))
    own = Listening(None)
    live(_listening(own, None))
    assert own.run == "q12-aligned-calm-reed"
    assert notebook.shown == []


def test_input_whose_end_nobody_knows_has_no_bar(notebook):
    live(_listening(None, None), rate="max")
    live(_listening(None, None), flow="my own")
    assert not [each for each in notebook.shown if 'class="progress"' in each._repr_html_()]


def test_a_run_that_failed_says_why(notebook):
    watcher = _listening(None, None)
    watcher.begins(Driver())
    watcher.ended("Spark was stopped <b>", None)
    assert repr(notebook.shown[0]).endswith("Spark was stopped <b>")
    assert "Spark was stopped &lt;b&gt;" in notebook.shown[0]._repr_html_()


def test_a_listener_and_the_card_are_told_both(notebook):
    ends = []
    live(_listening(None, SimpleNamespace(on_end=ends.append)))
    assert [(end.run, end.kept) for end in ends] == [("q12-aligned-calm-reed", "yes")]
    assert "its output is right" in repr(notebook.shown[0])
