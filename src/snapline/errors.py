"""Everything that Snapline raises on purpose.

SnaplineError
├─ UsageError           bad input: one clear message, exit code 2, nothing ran
│   ├─ GraphError         a dataflow that cannot be built, or that a protocol refuses
│   │   └─ NoSuchStep       a builder was asked for a step that it does not have; an AttributeError, too
│   ├─ ProtocolError      a protocol that cannot be registered as it is defined
│   ├─ FaultSyntaxError   a fault that the grammar does not know
│   └─ RunDamaged         what a run left is damaged or gone: nobody can go on with it as it is
├─ NotStarted           the input is fine, but here it cannot run: exit code 3, nothing ran
│   ├─ NoJava             there is no Java, or none that is new enough
│   ├─ NoSpark            Spark does not start, or is of a version that is not supported
│   └─ NoWorkers          the Python of Spark's workers cannot run slots
├─ Deposed              another driver has taken this run over: it goes on there, not here
├─ OperatorFailed       code of a dataflow raised, or returned something wrong; says which, where, on what
├─ FlowFailed           the same failed again after a restart: the run was ended, and can be resumed
├─ RunEnded             a run in the background could not go on; it can be resumed
├─ StreamFailed         the query of a stream failed: the run was ended, and can be resumed
├─ ProtocolViolation    our bug: a protocol was given, or asked for, something impossible
├─ InvariantBroken      a named property of a run does not hold; tells which, where and why
└─ StorageError
    ├─ StoreUnavailable   INDEFINITE: the write may have happened
    ├─ ObjectMissing      definite: nothing was ever stored under this name, or it was deleted
    │   └─ RowsDeleted      output that was public once, and that the run keeps no longer
    └─ ObjectDamaged      definite: the bytes are not those that were stored
"""


class SnaplineError(Exception):
    """The base class of everything that Snapline raises on purpose."""


class UsageError(SnaplineError):
    """Bad input. The message says what to do; nothing ran."""


class GraphError(UsageError):
    """A dataflow that cannot be built, or that the chosen protocol refuses."""


class NoSuchStep(GraphError, AttributeError):
    """A step that a stream or a dataflow does not have. The message says what to write instead."""


class ProtocolError(UsageError):
    """A protocol that cannot be registered as it is defined. The message says what to change in it."""


class FaultSyntaxError(UsageError):
    """A fault that the grammar does not know."""


class RunEnded(SnaplineError):
    """A run in the background could not go on. The message says why; the run can be resumed."""


class NotStarted(SnaplineError):
    """The input is fine, but it cannot run here. The message says what is missing; nothing ran."""


class NoJava(NotStarted):
    """No Java that Spark could use. The message says what was tried and what to do."""


class NoSpark(NotStarted):
    """Spark does not start, or its version is not supported."""


class NoWorkers(NotStarted):
    """The Python of Spark's workers cannot run slots, such as one without Snapline."""


class RunDamaged(UsageError):
    """What a run left is damaged or gone, and trying again does not help. The message names the file."""


class Deposed(SnaplineError):
    """Another driver has taken this run over. It goes on there; this one has written nothing since."""


class OperatorFailed(SnaplineError):
    """Code of a dataflow raised an exception, or returned something wrong. A restart is tried once."""

    def __init__(
        self, operator: str, kind: str, text: str, code: str = "", where: str = ""
    ) -> None:
        super().__init__(operator, kind, text, code, where)
        self.operator = operator  #: by its name in the dataflow
        self.kind = kind  #: the name of the exception's class
        self.text = text
        self.code = (
            code  #: the file and the line that raised it, or of the function that returned it
        )
        self.where = where  #: the input that it was given

    def __str__(self) -> str:
        return (
            f"operator '{self.operator}' failed: {self.cause}"
            + (f", at {self.code}" if self.code else "")
            + (f", on {self.where}" if self.where else "")
        )

    @property
    def cause(self) -> str:
        """What was raised, in one line: `KeyError: 'colour'`."""
        first = self.text.strip().partition("\n")[0]
        return f"{self.kind}: {first}" if first else self.kind


class FlowFailed(SnaplineError):
    """Code of a dataflow raised the same again after a restart, so the run was ended.

    The run's directory stays. Once the code is mended, `resume` goes on at the last line.
    """

    def __init__(self, story: str, operator: str, where: str, cause: str) -> None:
        super().__init__(story)
        self.operator = operator  #: by its name in the dataflow
        self.where = where  #: the line of the code, and the input that it was given
        self.cause = cause  #: the exception: `KeyError: 'colour'`


class StreamFailed(SnaplineError):
    """The query that reads a stream failed, so the run was ended.

    The run's directory stays. Once the cause is gone, `resume` goes on: the query from its checkpoint, the
    dataflow from its last line.
    """


class ProtocolViolation(SnaplineError):
    """A protocol was given, or asked for, something impossible: a bug of ours."""


class InvariantBroken(SnaplineError):
    """A named property of a run does not hold."""

    def __init__(self, name: str, story: str) -> None:
        super().__init__(f"{name}: {story}")
        self.name = name
        self.story = story


class StorageError(SnaplineError):
    """A store, a log or an egress did not do what it was asked."""


class StoreUnavailable(StorageError):
    """The store did not answer. Indefinite: the write may have happened."""


class ObjectMissing(StorageError):
    """Nothing is stored under this name. Definite: asking again does not help."""


class RowsDeleted(ObjectMissing):
    """Output that was public, and was deleted, because the run keeps it for a while only."""

    def __init__(self, story: str, through: int = 0) -> None:
        super().__init__(story)
        self.through = through  #: the first row that is left, where it is known


class ObjectDamaged(StorageError):
    """The stored bytes are not those that were written. Definite: asking again does not help."""
