"""Serves the page of a run or a sweep while it goes on: on this machine only, to whoever has its address.

The address holds a token that nobody can guess, and every other one is answered with 404; so is a request
that names another host, as a page elsewhere would if it had a name lead here. Nothing can be changed by
it. A page that is loaded has all that happened so far; what happens afterwards comes as events, a part of
the page at a time, at most once a second. While nobody looks nothing is computed, and the process asks for
little: it has the lowest priority but one.

What is followed may vanish at any moment, or say what cannot be read. Then the page keeps what it has
shown, says why it stands still, and goes on as soon as it can; nothing reaches the terminal of the run.
"""

import json
import os
import secrets
import threading
import time
from collections.abc import Mapping
from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

from snapline.errors import SnaplineError
from snapline.report.page.html import document
from snapline.report.page.style import asset

LOOK_EVERY_S = 0.2
"""So often it is looked whether a journal has grown: slots write theirs as often."""

DRAW_EVERY_S = 0.8
"""So often the page is made anew, at most."""

SIGN_EVERY_S = 10.0
"""After so long without news a viewer gets a sign of life, by which one that left is noticed."""

TROUBLE = "trouble"
"""The part of the page that says why the others stand still; empty while they do not."""

VIEWERS_MAX = 64
NICE = 10


class LiveSource(Protocol):
    """What goes on and is shown: a run, or a sweep."""

    name: str

    def advance(self) -> bool:
        """Read what is new; return whether the page has to change."""
        ...

    def parts(self) -> dict[str, str]:
        """The parts of the page by their names, in order; the names are always the same."""
        ...


class LivePage:
    """The parts of a page, made anew when there is something new and somebody looks.

    If they cannot be made, the last ones stay, and a part of its own says why.
    """

    def __init__(self, followed: LiveSource) -> None:
        self._followed = followed
        self._parts: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  #: the version in which each part last changed
        self._version = 0
        self._stale = True
        self._drawn_s = 0.0  #: when the page was last made
        self._news = threading.Condition()
        self._drawing = threading.Lock()
        self.viewers = 0
        self.ended = threading.Event()

    def document(self) -> str:
        """The whole page as it is now."""
        self._draw(now=True)
        with self._news:
            held = "".join(
                f'<div id="part-{name}">{html}</div>' for name, html in self._parts.items()
            )
            version = self._version
        script = f"<script>const VERSION = {version};{asset('live.js')}</script>"
        body = f'<p class="live" role="status">live</p><article>{held}</article>{script}'
        return document(f"{self._followed.name} · live · Snapline", body, reaches="'self'")

    def follow(self) -> None:
        """Look for news until the end; this is the work of one thread."""
        while not self.ended.wait(LOOK_EVERY_S):
            self._draw()
        self._draw(now=True)
        with self._news:
            self._news.notify_all()

    def _draw(self, *, now: bool = False) -> None:
        """Make the page anew if it has to be; unless it has to be now, only if somebody looks."""
        with self._drawing:
            try:
                parts = self._made_anew(now)
            except Exception as error:  # whatever it is, it may be gone when we look the next time
                self._stale = True
                self._show({**self._parts, TROUBLE: _why_still(error)})
            else:
                if parts is not None:
                    self._show({TROUBLE: "", **parts})
                    self._stale = False

    def _made_anew(self, now: bool) -> dict[str, str] | None:
        """The parts as they are now; None if they need not be made. Raises what the followed one raises."""
        self._stale |= self._followed.advance()
        due = time.monotonic() - self._drawn_s >= DRAW_EVERY_S
        if not self._stale or not (now or (due and self.viewers)):
            return None
        self._drawn_s = time.monotonic()  # what takes long, or fails, is not tried at once again
        parts = self._followed.parts()
        self._drawn_s = time.monotonic()
        return parts

    def _show(self, parts: dict[str, str]) -> None:
        """Let viewers have these parts, as far as they have changed."""
        with self._news:
            changed = [name for name, html in parts.items() if self._parts.get(name) != html]
            if not changed:
                return
            self._version += 1
            self._numbers |= dict.fromkeys(changed, self._version)
            self._parts = parts
            self._news.notify_all()

    def news(self, since: int) -> tuple[int, Mapping[str, str]]:
        """The parts that changed after a version, and the present one; waits for a while if none did."""
        with self._news:
            if self._version <= since and not self.ended.is_set():
                self._news.wait(SIGN_EVERY_S)
            changed = {n: html for n, html in self._parts.items() if self._numbers[n] > since}
            return self._version, changed

    def count_viewer(self, more: int) -> None:
        """Take note that somebody has come (1), or left (-1)."""
        with self._news:
            self.viewers += more


def _why_still(error: Exception) -> str:
    """What the page says when it cannot be made anew."""
    why = str(error) if isinstance(error, SnaplineError) else f"{type(error).__name__}: {error}"
    return (
        '<div class="witness" role="alert"><strong>this page stands still</strong>'
        f"<p>It shows what was known before. It goes on as soon as it can: {escape(why)}</p></div>"
    )


class _QuietServer(ThreadingHTTPServer):
    """A server that says nothing of a request that has failed: the terminal belongs to the run.

    A viewer who closes the page while it is sent makes a request fail.
    """

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing."""


class LiveServer:
    """The server of one page; `url` is where it is, once it has started."""

    def __init__(self, followed: LiveSource) -> None:
        self.page = LivePage(followed)
        token = secrets.token_urlsafe(18)
        ports: list[int] = []  # the handlers need the port, which is known when there is a server
        handler = partial(_Handler, self.page, token, ports)
        self._http = _QuietServer(("127.0.0.1", 0), handler)
        ports.append(self._http.server_port)
        self.url = f"http://127.0.0.1:{ports[0]}/{token}/"
        self._follower = threading.Thread(target=self.page.follow, daemon=True)

    def start(self, *, nice: bool = True) -> None:
        """Begin to serve, in threads of this process."""
        if nice:
            os.nice(NICE)
        self._follower.start()
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Show the last state to all viewers, and end."""
        self.page.ended.set()
        self._follower.join(timeout=10)
        time.sleep(0.1)  # for the last news to leave
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"

    def __init__(self, page: LivePage, token: str, port: list[int], *rest: object) -> None:
        self._page, self._token, self._port = page, token, port
        super().__init__(*rest)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer with the page, or with its news."""
        port = self._port[0]
        at_home = self.headers.get("Host") in (f"127.0.0.1:{port}", f"localhost:{port}")
        path, _, query = self.path.partition("?")
        if at_home and secrets.compare_digest(path.encode(), f"/{self._token}/".encode()):
            self._answer(self._page.document())
        elif at_home and secrets.compare_digest(path.encode(), f"/{self._token}/events".encode()):
            self._tell(query)
        else:
            self.send_error(404)

    def _answer(self, text: str) -> None:
        content = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(content)

    def _tell(self, query: str) -> None:
        """Send what changes until the viewer leaves, or the server ends."""
        if self._page.viewers >= VIEWERS_MAX:
            self.send_error(503, "too many viewers")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        known = self.headers.get("Last-Event-ID") or query.partition("since=")[2]
        version = int(known) if known.isascii() and known.isdecimal() and len(known) < 18 else 0
        self._page.count_viewer(1)
        try:
            while True:
                ended = self._page.ended.is_set()
                version, changed = self._page.news(version)
                told = (
                    f"id: {version}\ndata: {json.dumps(changed)}\n\n"
                    if changed
                    else ": still here\n\n"
                )
                self.wfile.write(told.encode())
                self.wfile.flush()
                if ended:
                    self.wfile.write(b"event: end\ndata: {}\n\n")
                    return
        except OSError:
            return  # the viewer has left
        finally:
            self._page.count_viewer(-1)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the run."""
