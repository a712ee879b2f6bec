"""A launched process is told what to run beside the loop of the driver, which must not wait for it."""

import threading

from snapline.runtime.launch.processes import ProcessSlots

#: Reads its standard input only once a file is there; after a while it gives up.
LATE = """
import pathlib, sys, time
until_s = time.monotonic() + 20
while not pathlib.Path({path!r}).exists():
    if time.monotonic() > until_s:
        sys.exit(3)
    time.sleep(0.01)
sys.stdin.buffer.read()
"""


def test_a_job_that_no_pipe_holds_does_not_keep_the_driver_waiting(tmp_path):
    ended, said = threading.Event(), []

    def on_exit(tag, why):
        said.append(why)
        ended.set()

    launcher = ProcessSlots(program=LATE.format(path=str(tmp_path / "go")))
    launcher.start(b"x" * (1 << 20), b"secret", on_exit, lambda tags: None)
    launcher.launch("slot 0")
    (tmp_path / "go").touch()  # only now does it read: whoever waited for that has waited in vain
    assert ended.wait(120)
    launcher.stop()
    assert said == [None]
