"""A case: everything that decides a simulated run.

That is protocol, workload, seed, size, faults, and how operators are placed and protected. What a case does
not say is drawn from its seed.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from snapline.arguments import numbered
from snapline.chaos.faults import Fault, parse
from snapline.chaos.plan import draw
from snapline.chaos.targets import aimed, check
from snapline.core.guarantee import Guarantee
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.pools import pool_sizes, pool_slots
from snapline.dataflow.usage.policies import Sayings, inputs_rule, save_rule
from snapline.durations import write_duration
from snapline.engine.options import GivenOptions, option_named, stored_options
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.protocols import PROTOCOLS
from snapline.sim.policies import drawn_pools, with_drawn_damage
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params, Size
from snapline.workload.common.settings import GivenSettings, paired

DURATION_MS: Millis = 2_400
POOL_MAX = 1_000
"""How many slots a pool may have."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run, completely described."""

    protocol: str
    workload: str
    seed: int
    slots: int = 3
    records: int = 60  # per slot and source
    guarantee: str = Guarantee.EXACTLY_ONCE.value
    faults: str | None = None  # in the grammar; None: drawn from the seed; empty: none
    size: Size = "small"
    hot: int = 0  # percent of the records that name the hot key ...
    hot_ms: Millis = 0  # ... and after how long another key becomes the hot one; 0: never
    settings: GivenSettings = ()  # those of the workload that were given
    options: GivenOptions = ()  # those of engine and protocol that were given; others are drawn
    save: Sayings = ()  # how often operators are saved, and ...
    inputs: Sayings = ()  # ... what becomes of their input while they are away
    pools: tuple[tuple[str, int], ...] = ()  # slots of pools; without any, protocols may draw some

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", paired(self.settings))  # read from JSON they are lists
        object.__setattr__(self, "options", stored_options(self.options, "options"))
        object.__setattr__(self, "save", save_rule(self.save, "save"))
        object.__setattr__(self, "inputs", inputs_rule(self.inputs, "inputs"))
        object.__setattr__(self, "pools", numbered(1, POOL_MAX)(self.pools, "pools"))

    @property
    def params(self) -> Params:
        """The size of its input."""
        return Params(
            self.seed,
            self.slots,
            self.records,
            DURATION_MS,
            full=self.size == "full",
            hot=self.hot,
            hot_ms=self.hot_ms,
            settings=self.settings,
        )

    def command(self) -> str:
        """The command that repeats this case."""
        words = ["snapline", "simulate", "--protocol", self.protocol, "--workload", self.workload]
        words += ["--seed", str(self.seed), "--slots", str(self.slots)]
        words += ["--records", str(self.records)]
        if self.guarantee != Guarantee.EXACTLY_ONCE.value:
            words += ["--guarantee", self.guarantee]
        if self.faults is not None:
            words += ["--faults", self.faults]
        if self.size != "small":
            words += ["--size", self.size]
        if self.hot:
            words += ["--hot", str(self.hot)]
        if self.hot_ms:
            words += ["--hot-moves", write_duration(self.hot_ms)]
        known = WORKLOADS[self.workload].settings if self.settings else {}
        for name, value in self.settings:
            words += ["--set", f"{name}={known[name].write(value)}"]
        for name, value in self.options:
            words += ["--option", f"{name}={option_named(name).write(value)}"]
        for option, said in (("--save", self.save), ("--inputs", self.inputs)):
            for operator, how in said:
                words += [option, f"{operator}={how}"]
        for pool, size in self.pools:
            words += ["--pool", f"{pool}={size}"]
        return shlex.join(words)

    def to_json(self) -> str:
        """The case as a file holds it."""
        return json.dumps({"case": 1, **asdict(self)}, indent=2)

    @staticmethod
    def from_json(text: str) -> "Case":
        """The case of a file."""
        try:
            fields = json.loads(text)
            if fields.pop("case") != 1:
                raise UsageError("this file was written by another version of Snapline")
            return Case(**fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"this is not the file of a simulated run: {error}") from error


def faults_of(case: Case) -> tuple[Fault, ...]:
    """The faults of a case: given, or drawn from its seed."""
    pools = pool_slots(case.slots, pools_of(case))
    slots = sum(map(len, pools.values()))
    if case.faults is None:
        drawn = draw(case.seed, slots, DURATION_MS)
        return with_drawn_damage(drawn, case.seed) if draws_policies(case) else drawn
    faults = aimed(parse(case.faults), pools)
    check(faults, slots)
    return faults


def flow_of(case: Case) -> Dataflow:
    """The dataflow of a case. Raises GraphError if it has no operator of which something is said."""
    flow = _plain_flow(case).with_policies(dict(case.save), dict(case.inputs))
    return flow.with_pools(pools_of(case))


def _plain_flow(case: Case) -> Dataflow:
    return WORKLOADS[case.workload].build(case.params)


def draws_policies(case: Case) -> bool:
    """Whether the seed says how operators are protected: the protocol heeds it, and nobody else says it."""
    protocol = PROTOCOLS.get(case.protocol)  # None: whoever simulates it brings its own
    heeds = protocol is not None and protocol.heeds_policies
    return heeds and not case.save and not case.inputs


def pools_of(case: Case) -> Mapping[str, int]:
    """The pools of a case and their sizes: given, or drawn from its seed, where policies and faults are.

    Raises GraphError if there is no such operator.
    """
    flow = _plain_flow(case)
    given = dict(case.pools)
    if draws_policies(case) and case.faults is None and not given:
        given = drawn_pools(flow, case.seed)
    return pool_sizes(flow.with_pools(given).graph, given)
