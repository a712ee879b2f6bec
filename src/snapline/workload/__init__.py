"""The workloads, each with a generator, a dataflow and an oracle. `WORKLOADS` is the only list."""

from snapline.workload.abs.query import ABS
from snapline.workload.base import Workload
from snapline.workload.counting.query import COUNTING
from snapline.workload.nexmark.queries import Q1, Q3, Q8, Q12
from snapline.workload.nhop.query import NHOP
from snapline.workload.reachability.query import REACHABILITY

WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (COUNTING, Q1, Q3, Q8, Q12, ABS, REACHABILITY, NHOP)
}
