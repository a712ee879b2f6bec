"""The protocols, each in one file with both its sides. This dict is the only list of them."""

from snapline.core.protocol import CheckpointProtocol
from snapline.core.topology import Topology
from snapline.protocols.aligned import ALIGNED
from snapline.protocols.aligned_cyclic import ALIGNED_CYCLIC
from snapline.protocols.bcs import BCS
from snapline.protocols.hmnr import HMNR
from snapline.protocols.none import NONE
from snapline.protocols.synchronous import SYNCHRONOUS
from snapline.protocols.unaligned import UNALIGNED
from snapline.protocols.uncoordinated import UNCOORDINATED

PROTOCOLS: dict[str, CheckpointProtocol] = {
    "none": NONE,
    "aligned": ALIGNED,
    "aligned-cyclic": ALIGNED_CYCLIC,
    "unaligned": UNALIGNED,
    "synchronous": SYNCHRONOUS,
    "uncoordinated": UNCOORDINATED,
    "hmnr": HMNR,
    "bcs": BCS,
}
DEFAULT = ALIGNED.name


def refusal(protocol: CheckpointProtocol, topology: Topology) -> str | None:
    """Why a protocol cannot run a graph, in a sentence for its user; None if it can."""
    if protocol.cycles or not topology.cyclic:
        return None
    able = ", ".join(name for name, other in PROTOCOLS.items() if other.cycles)
    return f"{protocol.name} cannot run a dataflow with a cycle: choose one of {able}"
