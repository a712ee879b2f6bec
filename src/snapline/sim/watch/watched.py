"""A simulated world that is watched: a monitor sees each entry of its journal, and may end the run."""

from snapline.engine.job import Job
from snapline.sim.watch.monitor import Monitor
from snapline.sim.world.costs import Costs
from snapline.sim.world.world import World


class WatchedWorld(World):
    """A world whose monitor checks the invariants while it runs."""

    def __init__(
        self, job: Job, costs: Costs, *, keep_journal: bool = False, thorough: bool = True
    ) -> None:
        self.monitor = Monitor(self, thorough=thorough)
        super().__init__(job, costs, self.monitor, keep_journal=keep_journal)
