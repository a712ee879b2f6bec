"""A real run is judged while it goes on, and loses a process: the verdict is that of the whole, later."""

import threading

import pytest
from process_slots import run_processes

from snapline.core.guarantee import Guarantee
from snapline.judge.history import history_of
from snapline.judge.lineage import judge_lineage
from snapline.judge.live import LiveJudge
from snapline.judge.reader import read_sinks
from snapline.rundir.output_rows import position_label, public_view
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params

SLOTS, DURATION_MS, INTERVAL_MS = 2, 3_000, 300
SETTINGS = (("bound", 0), ("disorder", 500))
POLL_S = 0.1


class Follower:
    """Polls a judge in a thread of its own, from the first event of a run to its end."""

    def __init__(self, workload, protocol):
        records = 300 * DURATION_MS // 1000
        params = Params(1, SLOTS, records, DURATION_MS, settings=SETTINGS)
        self.lineage = WORKLOADS[workload].lineage(params)
        self.view = public_view(protocol)
        self.over = threading.Event()
        self.seen = []
        self.problem = None
        self.thread = None

    def begin(self, driver, happened):
        if self.thread is None:
            lineage, slots = self.lineage, {"slots": SLOTS, "interval_ms": INTERVAL_MS}
            self.judge = LiveJudge(driver.directory, lineage, lineage.ranges, self.view, **slots)
            self.thread = threading.Thread(target=self._follow)
            self.thread.start()

    def _follow(self):
        try:
            while not self.over.wait(POLL_S):
                self.seen.append(self.judge.poll())
        except Exception as problem:
            self.problem = problem

    def end(self):
        self.over.set()
        self.thread.join()
        assert self.problem is None
        self.seen.append(self.judge.poll())  # by now all is public, on a machine of any speed
        return self.judge.finish()


@pytest.mark.parametrize(
    ("workload", "protocol"),
    [
        ("sst", "uncoordinated"),
        pytest.param("mst", "aligned", marks=pytest.mark.slow),
        pytest.param("mst", "unaligned", marks=pytest.mark.slow),
        pytest.param("mst", "uncoordinated", marks=pytest.mark.slow),
        pytest.param("sst", "none", marks=pytest.mark.slow),
    ],
)
def test_the_verdict_while_it_runs_is_that_of_the_whole(tmp_path, workload, protocol):
    follower = Follower(workload, protocol)
    outcome = run_processes(
        tmp_path,
        protocol,
        "kill slot=1 at=1s",
        workload=workload,
        duration_ms=DURATION_MS,
        settings=SETTINGS,
        batch=50,
        on_event=follower.begin,
    )
    assert (outcome.problem, outcome.lost) == (None, [1])
    directory = outcome.driver.directory
    directory.write("run.json", {**directory.spec(), "origin_s": outcome.driver.origin_s})
    report = follower.end()
    history = history_of(directory, "")
    sinks = read_sinks(directory, outcome.driver.job.deployment.sinks, follower.view)
    outputs = sinks["counts"].stamped, sinks["late"].stamped
    whole = judge_lineage(
        follower.lineage, *outputs, history.faults, history.end_ms, position_label
    )
    assert report.judged == whole.judged
    assert report.sentences == whole.sentences
    kept = "no" if protocol == "none" else "yes"
    assert report.judged.kept(Guarantee.EXACTLY_ONCE) == kept
    assert report.judged.late > 0
    # Something was judged before the end, and what was said then holds.
    assert follower.seen[-1].judged.inputs > 0
    for progress in follower.seen:
        assert progress.judged.undecided is None
        assert progress.judged.lost <= report.judged.lost
        assert progress.judged.causes.keys() <= report.judged.causes.keys()
