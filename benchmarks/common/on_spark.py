"""A local Spark session of Snapline's own, as the product starts one: it serves all runs of a benchmark."""

from typing import Any

from snapline.runtime.launch.spark import SparkSlots
from snapline.spark.slot_jobs import own_session


class OnSpark:
    """The session, with cores for so many slots; ends with a `with` block."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._session = own_session(slots)
        gateway: Any = self._session.sparkContext._gateway  # PySpark has no other way to its Java
        self.pid: int = gateway.proc.pid  #: of Java

    def launcher(self) -> SparkSlots:
        """What starts the slots of one run."""
        return SparkSlots(self._session)

    def __enter__(self) -> "OnSpark":
        return self

    def __exit__(self, *_: object) -> None:
        self._session.stop()
