"""The live page: what is appended to a journal comes into the page, and only to who has the address."""

import http.client
import json
import threading
from urllib.parse import urlsplit

import pytest

from growing_run import GrowingRun
from snapline.journal.entry import Happened
from snapline.journal.happenings import SecondMeasured, SlotLost
from snapline.report.live import follower as live_follower
from snapline.report.live import server as live_server
from snapline.report.live.follower import JournalFollower
from snapline.report.live.server import LivePage, LiveServer
from snapline.report.run import reading
from snapline.report.run.reading import read_run
from snapline.storage.files.places import write_whole

PATIENCE_S = 60


@pytest.fixture
def run(tmp_path):
    return GrowingRun(tmp_path)


@pytest.fixture
def server(run, monkeypatch):
    monkeypatch.setattr(live_server, "DRAW_EVERY_S", 0.05)
    monkeypatch.setattr(live_server, "LOOK_EVERY_S", 0.02)
    started = LiveServer(JournalFollower(run.directory))
    started.start(nice=False)
    yield started
    started.stop()


def test_a_follower_reads_what_was_appended_and_only_whole_lines(run):
    follower = JournalFollower(run.directory)
    assert follower.advance()  # the header
    assert not follower.advance()
    run.grow(0.5)
    assert follower.advance()
    half = list(follower.reported().entries)
    assert half == sorted(run.entries[: run.written], key=lambda entry: entry.at_us)
    line = run.lines[1 + run.written]
    run.append(line[:20])
    assert not follower.advance()
    run.append(line[20:])
    run.written += 1
    assert follower.advance()
    assert len(follower.reported().entries) == run.written
    run.grow(1)
    assert follower.advance()
    whole = follower.reported()
    assert len(whole.entries) == len(run.entries)
    assert len([row for row in whole.seconds if row.slot is None]) == len(seconds_of(run))


def seconds_of(run):
    return [
        e for e in run.entries if isinstance(e, Happened) and isinstance(e.what, SecondMeasured)
    ]


def test_a_damaged_line_stops_nobody(run):
    follower = JournalFollower(run.directory)
    run.grow(0.3)
    assert follower.advance()
    run.append('{"type":"Happened","at_us":')
    run.append("nonsense}\n")
    assert not follower.advance()
    run.grow(1)
    assert follower.advance()


class Visitor:
    """Asks a server for something, and closes all its connections at the end."""

    def __init__(self):
        self.opened = []

    def __call__(self, url, path="", host=None):
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE_S)
        headers = {} if host is None else {"Host": host}
        connection.request("GET", parts.path + path, headers=headers)
        answer = connection.getresponse()
        self.opened += [answer, connection]
        return answer

    def leave(self):
        for each in self.opened:
            each.close()


@pytest.fixture
def get():
    visitor = Visitor()
    yield visitor
    visitor.leave()


def test_only_who_has_the_address_gets_the_page(run, server, get):
    run.grow(0.5)
    port = urlsplit(server.url).port
    assert server.url.startswith("http://127.0.0.1:")
    page = get(server.url)
    assert page.status == 200
    assert "counting-uncoordinated" in page.read().decode()
    assert get(f"http://127.0.0.1:{port}/").status == 404
    assert get(f"http://127.0.0.1:{port}/wrong/").status == 404
    assert get(f"http://127.0.0.1:{port}/wrong/events").status == 404
    assert get(server.url, "../../etc/passwd").status == 404
    assert get(server.url, host="evil.example").status == 404
    assert get(server.url, "events", host="evil.example").status == 404
    assert get(server.url, host=f"localhost:{port}").status == 200


def news(answer):
    """The next event of a stream: its id, and the parts of the page that it brings."""
    number = None
    while True:
        line = answer.readline().decode()
        assert line, "the stream has ended"
        if line.startswith("id: "):
            number = int(line[4:])
        if line.startswith("data: "):
            return number, json.loads(line[6:])


def test_viewers_get_the_parts_that_have_changed_and_a_reload_gets_all(run, server, get):
    run.grow(0.3)
    get(server.url).read()
    viewers = [get(server.url, "events?since=0") for _ in range(3)]
    for viewer in viewers:
        number, parts = news(viewer)
        assert number >= 1
        assert {"head", "contents", "checkpoints"} <= set(parts)
    assert "Failure 1" not in parts["failure"]
    run.grow(1)
    for viewer in viewers:
        while "Failure 1" not in parts.get("failure", ""):
            number, parts = news(viewer)
        assert "data" in parts  # figures changed, too
        parts = {}
    again = get(server.url).read().decode()
    assert "Failure 1" in again
    lost = next(e for e in run.entries if isinstance(e, Happened) and isinstance(e.what, SlotLost))
    assert f"{lost.at_us / 1e6:.2f} s" in again
    # Who comes back after a break says what it has seen, and gets what it has not.
    number, parts = news(get(server.url, f"events?since={number - 1}"))
    assert parts


def test_a_viewer_that_leaves_is_forgotten_and_nothing_is_drawn_for_nobody(
    run, server, get, monkeypatch
):
    drawn = threading.Event()
    made = JournalFollower.parts
    monkeypatch.setattr(JournalFollower, "parts", lambda self: drawn.set() or made(self))
    monkeypatch.setattr(live_server, "SIGN_EVERY_S", 0.05)
    viewer = get(server.url, "events")
    run.grow(0.5)
    news(viewer)
    get.leave()
    waited = threading.Event()
    for _ in range(PATIENCE_S * 20):
        if server.page.viewers == 0:
            break
        waited.wait(0.05)
    assert server.page.viewers == 0
    drawn.clear()
    run.grow(0.8)
    assert not drawn.wait(0.5)
    get(server.url).read()
    assert drawn.is_set()


def trouble_after(page, since):
    """What a page says next of why it stands still, and the version in which it does."""
    for _ in range(PATIENCE_S):
        since, parts = page.news(since)
        if "trouble" in parts:
            return since, parts["trouble"]
    raise AssertionError("the page says nothing of any trouble")


def test_a_run_that_is_removed_leaves_its_last_page_and_says_so(
    run, server, get, capfd, monkeypatch
):
    monkeypatch.setattr(live_server, "SIGN_EVERY_S", 0.1)
    run.grow(0.5)
    number, _ = news(get(server.url, "events?since=0"))  # who looks on
    there, elsewhere = run.directory.path, run.directory.path.with_name("elsewhere")
    there.rename(elsewhere)
    number, trouble = trouble_after(server.page, number)
    assert "this page stands still" in trouble
    assert "run.json cannot be read" in trouble
    for _ in range(2):
        page = get(server.url).read().decode()
        assert "this page stands still" in page
        assert "Rates, backlog, latency" in page
    elsewhere.rename(there)
    assert trouble_after(server.page, number)[1] == ""
    assert "this page stands still" not in get(server.url).read().decode()
    assert capfd.readouterr() == ("", "")


def test_a_page_that_cannot_be_made_says_why_and_is_made_as_soon_as_it_can(run, monkeypatch):
    page = LivePage(JournalFollower(run.directory))
    run.grow(0.5)

    def fails(self):
        raise ZeroDivisionError("nothing by nothing")

    with monkeypatch.context() as broken:
        broken.setattr(JournalFollower, "parts", fails)
        assert "ZeroDivisionError: nothing by nothing" in page.document()
    whole = page.document()
    assert "this page stands still" not in whole
    assert "Rates, backlog, latency" in whole


def test_a_viewer_that_leaves_while_the_page_is_sent_says_nothing_in_the_terminal(
    run, server, capfd, monkeypatch
):
    refused = threading.Event()

    def gone(self, text):
        refused.set()
        raise BrokenPipeError("the viewer has left")

    monkeypatch.setattr(live_server._Handler, "_answer", gone)
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE_S)
    connection.request("GET", parts.path)
    with pytest.raises((http.client.HTTPException, OSError)):
        connection.getresponse()
    connection.close()
    assert refused.is_set()
    assert capfd.readouterr() == ("", "")


def test_what_was_read_of_a_journal_is_forgotten_with_it(run):
    follower = JournalFollower(run.directory)
    run.grow(1)
    later = run.path.with_name("slot-1.7.jsonl")
    later.write_text("".join(run.lines[:20]))
    assert follower.advance()
    known = len(follower.reported().journal)
    later.unlink()
    assert follower.advance()
    assert len(follower.reported().journal) == known - 19
    assert not follower.advance()


def test_a_journal_that_was_replaced_is_read_from_its_beginning(run):
    follower = JournalFollower(run.directory)
    run.grow(0.5)
    follower.advance()
    half = len(follower.reported().entries)
    write_whole(run.path, "".join(run.lines))  # a longer file in its place
    assert follower.advance()
    assert len(follower.reported().entries) == len(run.entries) > half
    with run.path.open("r+") as file:
        file.truncate(len(run.lines[0]) + len(run.lines[1]))
    assert follower.advance()
    assert len(follower.reported().entries) == 1


def test_journals_of_slots_that_are_too_large_are_left_out_and_named(run, monkeypatch):
    folder, size = run.path.parent, sum(map(len, run.lines[:20]))
    monkeypatch.setattr(live_follower, "JOURNALS_BYTES_MAX", 2 * size)
    monkeypatch.setattr(reading, "JOURNALS_BYTES_MAX", 2 * size)
    run.grow(1)
    follower = JournalFollower(run.directory)
    for number in (1, 2, 3, 4):
        (folder / f"slot-{number}.1.jsonl").write_text("".join(run.lines[:20]))
    follower.advance()
    for found in (follower.reported(), read_run(run.directory, {})):
        assert len(found.journal) == len(run.entries) + 2 * 19
        assert found.gap == (
            "the journals of slots are too large to be drawn: slot-3.1.jsonl and 1 other are left out"
        )
    monkeypatch.setattr(live_follower, "JOURNAL_BYTES_MAX", size - 1)
    alone = JournalFollower(run.directory)
    while alone.advance():
        pass
    assert len(alone.reported().journal) == len(run.entries)


def test_the_end_is_told_with_the_last_state(run, server, get):
    run.grow(0.5)
    viewer = get(server.url, "events")
    news(viewer)
    run.directory.write("result.json", {"kept": "yes", "because": "all is well"})
    server.stop()
    rest = viewer.read().decode()
    assert "event: end" in rest
