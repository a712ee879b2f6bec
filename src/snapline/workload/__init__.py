"""The workloads, each with a generator, a dataflow and an oracle. `WORKLOADS` is the only list.

It has those of others, too: an installed distribution brings one by an entry point in the group
`snapline.workloads`.
"""

from collections.abc import Mapping

from snapline.errors import UsageError
from snapline.plugins import Catalogue
from snapline.workload.abs.query import ABS
from snapline.workload.common.base import Workload
from snapline.workload.common.settings import GivenSettings, read_settings
from snapline.workload.counting.query import COUNTING
from snapline.workload.fab.query import FAB
from snapline.workload.habits.query import HABITS
from snapline.workload.joins.query import GJOIN, SJOIN
from snapline.workload.lineage.queries import MST, SST
from snapline.workload.nexmark.dashboards import Q5, Q6, Q7
from snapline.workload.nexmark.queries import Q1, Q3, Q8, Q12
from snapline.workload.nhop.query import NHOP
from snapline.workload.reachability.query import REACHABILITY

_NEXMARK = (Q1, Q3, Q5, Q6, Q7, Q8, Q12)
_OWN = (COUNTING, *_NEXMARK, HABITS, ABS, SST, MST, FAB, SJOIN, GJOIN, REACHABILITY, NHOP)
WORKLOADS = Catalogue(
    "workload", Workload, {workload.name: workload for workload in _OWN}, __name__
)


def settings_of(flow: str, given: Mapping[str, str | int]) -> GivenSettings:
    """The settings that a user gave for a flow: only workloads have some. Raises UsageError."""
    if flow in WORKLOADS:
        return read_settings(flow, WORKLOADS[flow].settings, given)
    if given:
        raise UsageError(f"only workloads have settings (--set), and {flow!r} is none")
    return ()
