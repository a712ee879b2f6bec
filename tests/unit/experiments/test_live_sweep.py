"""How a sweep goes on, as its page shows it while it does: from files, so a reload loses nothing."""

import http.client
import json
import re
import shutil
from html import unescape
from urllib.parse import urlsplit

import pytest

from made_up_sweeps import FILE, snapline, world
from snapline.cli.experiments.live_sweep import SweepFollower
from snapline.experiments.sweep_progress import PlannedRun, left_s, read_state
from snapline.rundir.directory import RunDirectory

__all__ = ["snapline", "world"]

PATIENCE_S = 60


@pytest.fixture
def place(tmp_path):
    return tmp_path / "sweeps" / "price"


def shown(place):
    """What somebody sees who opens the page now: its text, and how many runs stand how."""
    follower = SweepFollower(place)
    follower.advance()
    parts = follower.parts()
    standings = re.findall(r'<td class="(\w+)"', parts["runs"])
    text = unescape(" ".join(re.sub(r"<[^>]+>", " ", "".join(parts.values())).split()))
    return text, {name: standings.count(name) for name in set(standings)}


def test_every_run_is_shown_as_it_stands_while_the_sweep_goes_on(snapline, world, place):
    seen = {}
    world.broken = {5}
    world.meanwhile = lambda number: seen.update({number: shown(place)})
    snapline("sweep", "price.toml")
    text, standings = seen[1]
    assert standings == {"running": 1, "waiting": 17}
    assert "goes on : turn 1, protocol=" in text
    assert "0 of 18" in text
    assert "about left" in text
    assert "Ratios so far" not in text
    text, standings = seen[9]
    assert standings == {"done": 7, "failed": 1, "running": 1, "waiting": 9}
    assert "failed: no process started" in text
    assert "Ratios so far" in text
    assert re.search(r"records read Each column over protocol=none, .* from one pair|slower", text)
    text, standings = shown(place)  # when it is over
    assert standings == {"done": 17, "failed": 1}
    assert "not over, and nobody works at it" in text
    assert "The present run" not in text
    world.broken = set()
    snapline("sweep", "price.toml")
    text, standings = shown(place)
    assert standings == {"done": 18}
    assert "over : " in text
    assert "What went wrong" not in text


def test_a_page_that_is_open_sees_each_change_and_nothing_twice(snapline, world, place):
    pages = []

    def look(number):
        if not pages:
            pages.append(SweepFollower(place))
            pages[0].advance()
        elif number in (2, 12):
            assert pages[0].advance()
            fresh = SweepFollower(place)
            fresh.advance()
            known, new = pages[0].parts(), fresh.parts()
            assert {n: known[n] for n in ("runs", "ratios", "problems")} == {
                n: new[n] for n in ("runs", "ratios", "problems")
            }

    world.meanwhile = look
    snapline("sweep", "price.toml")
    assert pages[0].advance()
    assert "18 of 18" in pages[0].parts()["head"]
    assert not pages[0].advance()


def test_a_run_that_is_removed_while_its_page_is_made_is_not_shown(snapline, world, place):
    seen = []

    def look(number):
        if number != 2:
            return
        spec = {"flow": "q12", "protocol": "aligned", "slots": 1}
        present = RunDirectory.create(place / "runs", "q12", "aligned", spec)
        said = json.loads((place / "progress.json").read_text())
        said["at_work"][4] = present.name
        (place / "progress.json").write_text(json.dumps(said))
        follower = SweepFollower(place)
        follower.advance()
        seen.append(present.name in follower.parts()["now"])
        shutil.rmtree(present.path)
        seen.append(follower.parts()["now"])

    world.meanwhile = look
    snapline("sweep", "price.toml")
    assert seen == [True, ""]


def test_a_sweep_whose_process_was_killed_does_not_go_on(snapline, world, place):
    kept = {}
    world.meanwhile = lambda number: kept.update(text=(place / "progress.json").read_text())
    snapline("sweep", "price.toml")
    said = json.loads(kept["text"])
    assert said["at_work"] is not None
    assert read_state(place).ended_s is not None
    (place / "progress.json").write_text(kept["text"])
    assert read_state(place).is_at_work  # this very process wrote it
    (place / "progress.json").write_text(json.dumps({**said, "process": [said["process"][0], "0"]}))
    assert not read_state(place).is_at_work
    assert "runs now" not in shown(place)[0]


def test_what_a_search_takes_is_left_until_it_has_an_end(snapline, world, place, tmp_path):
    text = FILE.replace("turns = 6", "turns = 1").replace(
        "slots = 1", 'slots = 1\nrate = "80% of capacity"'
    )
    (tmp_path / "price.toml").write_text(text)
    left = []
    world.meanwhile = lambda number: left.append(len(read_state(place).searches))
    snapline("sweep", "price.toml")
    assert (left[0], left[-1]) == (1, 0)
    assert sorted(left, reverse=True) == left


def test_the_rest_takes_as_long_as_runs_of_the_same_column_did():
    runs = [PlannedRun(f"{n}", "", "ab"[n % 2], n, 10.0) for n in range(6)]
    assert left_s(runs, {}) == 60
    assert left_s(runs, {"0": 4.0}) == 4 + 4 + 30
    assert left_s(runs, {"0": 4.0}, [100.0]) == 138
    assert left_s(runs, {}, spent_s=3) == 57
    assert left_s(runs, {}, spent_s=1_000) == 50  # late, and the others take no less for it
    assert left_s(runs, {run.key: 1.0 for run in runs}) == 0
    shared = [*runs, PlannedRun("0", "other form", "a", 1, 10.0)]
    assert left_s(shared, {}) == 60


def test_a_sweep_that_says_nothing_about_itself_is_refused(snapline, world, place):
    snapline("sweep", "price.toml")
    for content in ("{}", "[1]", "not json"):
        (place / "progress.json").write_text(content)
        code, _, err = snapline("report", str(place), "--live")
        assert (code, "does not say how it goes on" in " ".join(err.split())) == (2, True), err


def test_the_page_beside_a_sweep_is_for_who_has_its_address(snapline, world, place, capsys):
    where, got = [], []

    def visit(number):
        if number == 4:
            found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", capsys.readouterr().err)
            assert found, "nobody said where the page is"
            where.append(urlsplit(found[0]))
            for path in (where[0].path, "/", "/wrong/"):
                connection = http.client.HTTPConnection(
                    where[0].hostname, where[0].port, timeout=PATIENCE_S
                )
                connection.request("GET", path)
                answer = connection.getresponse()
                got.append((answer.status, answer.read().decode()))
                connection.close()

    world.meanwhile = visit
    assert snapline("sweep", "price.toml", "--live")[0] == 0
    page, *others = got
    assert page[0] == 200
    assert "3 of 18" in page[1]
    assert [status for status, _ in others] == [404, 404]
    with pytest.raises(OSError, match="refused"):  # it has ended with the sweep
        http.client.HTTPConnection(where[0].hostname, where[0].port, timeout=5).connect()
