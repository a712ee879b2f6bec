"""Turns the options of `snapline simulate` into cases: which protocols, workloads and seeds to run."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from snapline.arguments import nearest
from snapline.core.guarantee import Guarantee
from snapline.dataflow.usage.policies import Sayings
from snapline.engine.options import GivenOptions, idle_option
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case, faults_of, flow_of
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Size
from snapline.workload.common.settings import read_settings, split_settings

SEEDS = 20
TELLING_SEEDS = 18  # with fewer seeds, something may be missing from a sweep by chance


@dataclass(frozen=True, slots=True)
class Request:
    """Which runs were asked for. What is None is the case's or the protocol's default, or drawn."""

    protocols: tuple[str, ...]
    workloads: tuple[str, ...]
    seeds: tuple[int, ...]
    slots: int | None = None
    records: int | None = None
    guarantee: Guarantee | None = None
    faults: str | None = None
    size: Size = "small"
    hot: int = 0
    hot_ms: Millis = 0
    settings: tuple[str, ...] = ()  # as they were written: NAME=VALUE
    options: GivenOptions = ()
    save: Sayings = ()
    inputs: Sayings = ()
    pools: tuple[tuple[str, int], ...] = ()

    @property
    def alone(self) -> bool:
        """Whether this is a single run."""
        return len(self.protocols) == len(self.workloads) == len(self.seeds) == 1

    @property
    def telling(self) -> bool:
        """Whether the sweep is so large and random that all that can occur must have occurred in it."""
        drawn = self.faults is None and not self.options
        return drawn and len(self.seeds) >= TELLING_SEEDS

    def cases(self) -> list[Case]:
        """The runs, in the order of the table."""
        sizes = {"slots": self.slots, "records": self.records}
        given = {name: size for name, size in sizes.items() if size is not None}
        named = split_settings(self.settings)
        settings = {w: read_settings(w, WORKLOADS[w].settings, named) for w in self.workloads}
        return [
            Case(
                protocol,
                workload,
                seed,
                guarantee=(self.guarantee or PROTOCOLS[protocol].guarantees[0]).value,
                faults=self.faults,
                size=self.size,
                hot=self.hot,
                hot_ms=self.hot_ms,
                settings=settings[workload],
                options=self.options,
                save=self.save,
                inputs=self.inputs,
                pools=self.pools,
                **given,
            )
            for protocol in self.protocols
            for workload in self.workloads
            for seed in self.seeds
        ]

    def refusal(self, protocol: str) -> str | None:
        """Why a protocol cannot be run as it was asked for; None if it can."""
        if idle := idle_option(self.options, PROTOCOLS[protocol]):
            return idle
        promises = PROTOCOLS[protocol].guarantees
        if self.guarantee is None or self.guarantee in promises:
            return None
        able = " or ".join(guarantee.value for guarantee in promises)
        return f"{protocol} does not promise {self.guarantee.value}, only {able}"


def chosen_protocols(name: str | None) -> tuple[str, ...]:
    """The protocols that `--protocol` means."""
    return one_of("protocol", name or "all", PROTOCOLS)


def chosen_workloads(name: str | None) -> tuple[str, ...]:
    """The workloads that `--workload` means."""
    return one_of("workload", name or "counting", WORKLOADS)


def chosen_seeds(seeds: int | None, seed: int | None, one: bool) -> tuple[int, ...]:
    """The seeds that `--seeds` or `--seed` means; without both, one or the usual number of them."""
    if seeds is not None and seed is not None:
        raise UsageError("--seeds runs many seeds, --seed one: choose one of the two")
    if seed is not None:
        return (seed,)
    return tuple(range(1, (seeds or (1 if one else SEEDS)) + 1))


def checked(request: Request, diagram: Path | None) -> Request:
    """Return the request if it makes sense; otherwise raise a UsageError that says what to change."""
    cases = request.cases()
    for case in {case.workload: case for case in cases}.values():
        flow_of(case)  # raises if its settings make no sense, or if there is no such operator
        if request.faults is not None:
            faults_of(case)  # raises if it has no such slots
    if diagram is not None and not request.alone:
        raise UsageError("--diagram draws one run: add --protocol P --workload W --seed K")
    return request


def one_of(kind: str, name: str, known: Collection[str]) -> tuple[str, ...]:
    """The known thing of this name as a tuple of one, or all of them for "all". Raises UsageError."""
    if name == "all":
        return tuple(known)
    if name in known:
        return (name,)
    raise UsageError(f"--{kind}: there is no {kind} {name!r}; {nearest(name, (*known, 'all'))}")
