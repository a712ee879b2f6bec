"""From options to runs: which protocols, workloads and seeds `snapline simulate` was asked for."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from snapline.chaos.faults import check, parse
from snapline.core.policy import Guarantee
from snapline.errors import UsageError
from snapline.protocols import PROTOCOLS
from snapline.sim.run import Case
from snapline.workload import WORKLOADS

SEEDS = 20
TELLING_SEEDS = 20  # a sweep of fewer cannot be blamed for what never occurred in it


@dataclass(frozen=True, slots=True)
class Request:
    """Which runs were asked for."""

    protocols: tuple[str, ...]
    workloads: tuple[str, ...]
    seeds: tuple[int, ...]
    slots: int
    guarantee: Guarantee | None
    faults: str | None

    @classmethod
    def of(
        cls,
        protocol: str | None,
        workload: str | None,
        seeds: int | None,
        seed: int | None,
        slots: int | None,
        guarantee: Guarantee | None,
        faults: str | None,
        diagram: Path | None,
    ) -> Self:
        """The request that these options mean, or a UsageError that says what to change."""
        if seeds is not None and seed is not None:
            raise UsageError("--seeds runs many seeds, --seed one: choose one of the two")
        slots = slots or Case.slots
        if faults is not None:
            check(parse(faults), slots)
        if diagram is not None and seeds is None and seed is None:
            seed = 1
        request = cls(
            protocols=_chosen("protocol", protocol or "all", PROTOCOLS),
            workloads=_chosen("workload", workload or "counting", WORKLOADS),
            seeds=tuple(range(1, (seeds or SEEDS) + 1)) if seed is None else (seed,),
            slots=slots,
            guarantee=guarantee,
            faults=faults,
        )
        if diagram is not None and not request.alone:
            raise UsageError("--diagram draws one run: add --protocol P --workload W --seed K")
        return request

    @property
    def alone(self) -> bool:
        """Whether this is a single run."""
        return len(self.protocols) == len(self.workloads) == len(self.seeds) == 1

    @property
    def telling(self) -> bool:
        """Whether a property that never occurred is the sweep's fault."""
        return self.faults is None and len(self.seeds) >= TELLING_SEEDS

    def cases(self) -> list[Case]:
        """The runs, in the order of the table."""
        return [
            Case(
                protocol,
                workload,
                seed,
                slots=self.slots,
                guarantee=(self.guarantee or PROTOCOLS[protocol].guarantees[0]).value,
                faults=self.faults,
            )
            for protocol in self.protocols
            for workload in self.workloads
            for seed in self.seeds
        ]


def _chosen(kind: str, name: str, known: Iterable[str]) -> tuple[str, ...]:
    names = tuple(known)
    if name == "all":
        return names
    if name in names:
        return (name,)
    near = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}, all"
    raise UsageError(f"there is no {kind} {name!r}; {hint}")
