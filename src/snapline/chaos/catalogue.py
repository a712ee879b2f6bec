"""What `snapline list faults` shows: of every form of fault an example, its meaning, and where it works."""

from snapline.chaos.faults import (
    BeforeEffect,
    DamageRecord,
    Fault,
    Kill,
    KillDriver,
    KillExecutor,
    LaunchFailing,
    LaunchSlow,
    PauseDriver,
)

GRAMMAR: tuple[tuple[str, str], ...] = (
    ("kill slot=1 at=800ms", "slot 1 dies"),
    ("kill slot=0,2 at=1s", "slots 0 and 2 die at once"),
    ("kill slot=1 at=1s for=3s", "slot 1 dies, and nothing takes its place for 3 s"),
    ("kill slot=1 step=137", "slot 1 dies just before the 137th effect that it performs"),
    ("kill slot=1 on=recovery", "slot 1 dies while the next recovery is under way"),
    (
        "kill slot=1 on=round",
        "slot 1 dies while a round is under way, after the first committed line",
    ),
    ("kill pool=model at=1s", "all slots of the pool model die at once"),
    ("kill pool=model at=1s for=3s", "they die, and nothing takes their places for 3 s"),
    ("kill executor=1 at=1s", "the executor that hosts slot 1 dies, with all slots that it hosts"),
    ("kill driver at=1s", "the driver dies, and the run is resumed at once"),
    ("kill driver on=round", "the same, while the next round (or recovery) is under way"),
    ("kill coordinator at=1s for=300ms", "the coordinator dies and is resumed after 300 ms"),
    ("pause slot=1 at=1s for=2s", "slot 1 stands still; after the time-out it is a zombie"),
    ("pause coordinator at=1s for=2s", "the coordinator stands still"),
    ("pause driver at=1s for=2s", "the same, for systems that have only a driver"),
    ("cut slot=1 from=2 at=1s for=500ms", "nothing passes between slots 1 and 2; then it does"),
    ("cut slot=1 from=coordinator at=1s for=500ms", "nothing passes to or from the coordinator"),
    ("cut slot=0,1 from=2,coordinator at=1s for=5s", "a partition: nothing passes across it"),
    (
        "cut slot=1 from=2 at=1s",
        "the connection of slots 1 and 2 breaks; what was on its way is lost",
    ),
    ("delay slot=2 500ms at=30s for=10s", "all that slot 2 sends or receives takes 500 ms longer"),
    ("store outage at=1s for=500ms", "the store answers nobody"),
    ("store slow 50ms at=1s for=1s", "every call to the store takes 50 ms longer"),
    ("store failing 30% at=1s for=1s", "every call to the store fails with this chance"),
    ("damage slot=1 at=1s", "the newest snapshot of a task of slot 1 is damaged"),
    ("damage decision at=1s", "the newest decision that published output is damaged"),
    ("lose decision at=1s", "the same decision is gone"),
    ("damage manifest at=1s", "the newest manifest of public output is damaged"),
    ("lose manifest at=1s", "the same manifest is gone"),
    ("launch failing slot=1 at=1s for=1s", "what is started for slot 1 dies before it registers"),
    ("launch slow slot=1 2s at=1s for=1s", "what is started for slot 1 registers 2 s later"),
)


def where(fault: Fault) -> str:
    """In which worlds a fault can be done."""
    match fault:
        case Kill(_, BeforeEffect()):
            return "simulator"
        case DamageRecord() | LaunchFailing() | LaunchSlow():
            return "simulator"
        case KillExecutor():
            return "simulator, clusters"  # a local master has no executor that could be killed
        case KillDriver() | PauseDriver():
            return "everywhere"  # in the simulator, in real runs, and in other systems under test
        case _:
            return "simulator, real runs"
