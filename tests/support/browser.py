"""A real browser for tests: Debian's Chromium without a window, driven by the DevTools protocol.

One browser serves all pages of a test file: `with Browser() as browser: page = browser.open(path)`. It is
killed at the end, with all its processes, which share a process group of their own.
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_S = 50
"""So long a test waits for an answer of the browser, which takes milliseconds on a machine at rest."""


def find_browser():
    """The path of a browser; an AssertionError, which says what to do, if there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found, "these tests need a browser: apt-get install chromium (.ci/run does it by itself)"
    return found


class Browser:
    """A browser process, and the one connection to it."""

    def __init__(self):
        self.events = []
        self._number = 0
        self._received = b""

    def __enter__(self):
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()

        def wire():  # the browser reads commands from 3 and answers on 4
            spare = os.dup(theirs_out)
            os.dup2(theirs_in, 3)
            os.dup2(spare, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        # Tests run as root in containers, where the browser's sandbox cannot be set up.
        flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")
        flags += ("--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking")
        flags += ("--hide-scrollbars", "--force-device-scale-factor=1", "--mute-audio")
        self._process = subprocess.Popen(
            [find_browser(), *flags, f"--user-data-dir={self._home.name}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=wire,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        return self

    def __exit__(self, *_):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._home.cleanup()

    def call(self, method, session=None, **params):
        """Ask the browser for something, and return its answer; what it tells meanwhile is kept."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": params}
        if session is not None:
            asked["sessionId"] = session
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]
            self.events.append(told)

    def _next(self):
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._from], [], [], deadline - time.monotonic())
            assert ready, f"the browser has not answered for {PATIENCE_S} s"
            more = os.read(self._from, 1 << 20)
            assert more, "the browser has ended"
            self._received += more
        line, _, self._received = self._received.partition(b"\0")
        return json.loads(line)

    def open(self, url, width=1440, *, dark=False):
        """Open a page in a tab of its own, at a width, and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Tab(self, session, target)
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            page.call(f"{domain}.enable")
        page.resize(width, dark=dark)
        page.call("Page.navigate", url=Path(url).as_uri() if isinstance(url, Path) else url)
        page.until("document.readyState === 'complete' && location.href !== 'about:blank'")
        return page


class Tab:
    """One open page."""

    def __init__(self, browser, session, target):
        self._browser, self._session, self._target = browser, session, target

    def call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def close(self):
        self._browser.call("Target.closeTarget", targetId=self._target)

    def resize(self, width, height=900, *, dark=False):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = "dark" if dark else "light"
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def eval(self, expression):
        """The value of a JavaScript expression."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        found = self.call("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression):
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.eval(expression):
            assert time.monotonic() < deadline, f"{expression} did not come true"
            time.sleep(0.05)

    def told(self, *methods):
        """What the browser told of this page, of these kinds."""
        return [
            event["params"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] in methods
        ]

    @property
    def complaints(self):
        """Errors and warnings of the console."""
        thrown = self.told("Runtime.exceptionThrown")
        logged = [e["entry"] for e in self.told("Log.entryAdded")]
        spoken = [e for e in self.told("Runtime.consoleAPICalled") if e["type"] != "log"]
        return [*thrown, *logged, *spoken]

    @property
    def requests(self):
        """The addresses of everything that the page has asked for."""
        return [event["request"]["url"] for event in self.told("Network.requestWillBeSent")]

    def screenshot(self, path):
        """Save a picture of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(taken["data"]))
