"""The live page in a process of its own: it serves, and goes when it is told to."""

from functools import partial
from urllib.request import urlopen

from snapline.report.live.follower import follow_run
from snapline.report.live.process import LiveProcess
from snapline.rundir.directory import RunDirectory


def test_the_process_serves_the_page_until_it_is_told_to_stop(tmp_path):
    spec = {"flow": "q12", "protocol": "aligned", "slots": 2, "faults": ""}
    directory = RunDirectory.create(tmp_path, "q12", "aligned", spec)
    beside = LiveProcess(partial(follow_run, directory.path))
    assert beside.url is not None
    with urlopen(beside.url, timeout=60) as answer:
        page = answer.read().decode()
    assert directory.name in page
    assert "not over" in page
    beside.stop()
    assert not beside._process.is_alive()
