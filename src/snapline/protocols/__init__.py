"""The protocols, each in one file with both its sides. `PROTOCOLS` is the only list of them.

It also holds the protocols that other installed packages bring, by an entry point in the group
`snapline.protocols`.
"""

from snapline.core.protocol import CheckpointProtocol
from snapline.core.topology import Topology
from snapline.plugins import Catalogue
from snapline.protocols.aligned import ALIGNED
from snapline.protocols.aligned_cyclic import ALIGNED_CYCLIC
from snapline.protocols.bcs import BCS
from snapline.protocols.hmnr import HMNR
from snapline.protocols.none import NONE
from snapline.protocols.partial import PARTIAL
from snapline.protocols.synchronous import SYNCHRONOUS
from snapline.protocols.unaligned import UNALIGNED
from snapline.protocols.uncoordinated import UNCOORDINATED

_OWN = (NONE, ALIGNED, ALIGNED_CYCLIC, UNALIGNED, SYNCHRONOUS, UNCOORDINATED, HMNR, BCS, PARTIAL)
PROTOCOLS = Catalogue(
    "protocol", CheckpointProtocol, {protocol.name: protocol for protocol in _OWN}, __name__
)
DEFAULT = ALIGNED.name


def refusal(protocol: CheckpointProtocol, topology: Topology) -> str | None:
    """Why a protocol cannot run a graph, in a sentence for its user; None if it can."""
    if protocol.cycles or not topology.cyclic:
        return None
    able = ", ".join(name for name, other in PROTOCOLS.items() if other.cycles)
    return f"{protocol.name} cannot run a dataflow with a cycle: choose one of {able}"
