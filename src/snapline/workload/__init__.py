"""The workloads, each with a generator, a dataflow and an oracle. `WORKLOADS` is the only list."""

from snapline.workload.base import Workload
from snapline.workload.nexmark.queries import Q1
from snapline.workload.nhop.query import NHOP
from snapline.workload.reachability.query import REACHABILITY

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in (Q1, REACHABILITY, NHOP)}
