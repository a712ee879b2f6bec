"""The protocols, each in one file with both its sides. `PROTOCOLS` is the only list of them.

It also holds the protocols that other installed packages bring, by an entry point in the group
`snapline.protocols`.
"""

from collections.abc import Sequence

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


def refusal(
    protocol: CheckpointProtocol, topology: Topology, protected: Sequence[str] = ()
) -> str | None:
    """Why a protocol cannot run a graph, in a sentence for its user; None if it can.

    `protected` are the operators of which somebody said how they are protected.
    """
    if topology.cyclic and not protocol.cycles:
        able = ", ".join(name for name, other in PROTOCOLS.items() if other.cycles)
        return f"{protocol.name} cannot run a dataflow with a cycle: choose one of {able}"
    if protected and not protocol.heeds_policies:
        able = ", ".join(name for name, other in PROTOCOLS.items() if other.heeds_policies)
        return (
            f"{protocol.name} protects all operators alike, and cannot heed what is said of "
            f"'{protected[0]}' (checkpoint, inputs, best_effort, --save, --inputs): leave that out, or "
            f"choose a protocol that can ({able or 'none that is installed'})"
        )
    return None


def committed(protocol: object) -> tuple[str, str]:
    """What the coordinator commits under a protocol: the noun for one, and for a count of them.

    Where output is public at once no line has to cover it: what is numbered there are decisions.
    """
    found = PROTOCOLS.get(str(protocol))
    at_once = found is not None and found.publishes_at_once
    return ("decision", "decisions made") if at_once else ("line", "lines committed")
