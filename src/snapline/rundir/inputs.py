"""Identifies the input of a run, so that a run is never resumed on another input.

The fingerprint of a deployment covers the graph and the slots; a real run adds its inputs to it. A
computed input is identified by all that it is computed from, and by its first records if a rule of the
user makes them; a stored one by its description and the checksums or footers of its files. No input is
read as a whole. The code of a user's function is not compared, neither in a source nor elsewhere.
"""

import hashlib
from dataclasses import replace

from snapline.batch_form import encode
from snapline.dataflow.deploy import Deployment
from snapline.storage.api import Identified, Ingress
from snapline.storage.codec import digest_of

SAMPLE = 32
"""How many records at either end are hashed for an input that has no `identity` of its own."""


def with_inputs(deployment: Deployment) -> Deployment:
    """The same deployment; its fingerprint covers the inputs, too: `GRAPH-INPUTS`."""
    first_slot = [plan for plan in deployment.plans.values() if plan.slot == 0]
    said = [identity_of(plan.ingress) for plan in first_slot if plan.ingress is not None]
    digest = hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]
    return replace(deployment, fingerprint=f"{deployment.fingerprint}-{digest}")


def identity_of(ingress: Ingress) -> str:
    """A text that differs for different inputs, as far as that shows without reading all records."""
    if isinstance(ingress, Identified):
        return ingress.identity
    ends = [ingress.end(partition) for partition in range(ingress.partitions)]
    stop = ends[0] if ends[0] is not None else SAMPLE
    parts = [ingress.read(0, 0, min(SAMPLE, stop)), ingress.read(0, max(0, stop - SAMPLE), stop)]
    return repr((ends, [digest_of(encode(part)) for part in parts]))
