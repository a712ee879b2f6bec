"""What goes from the user's process to that of the query: functions, where modules lie, settings."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from snapline.errors import UsageError
from snapline.storage.files.places import whole_file
from snapline.systems.own_query.driver import Build, Write

GATEWAY = "PYSPARK_GATEWAY"
"""How variables begin that make PySpark use a Java that runs already, as under `spark-submit`."""

INHERITED = ("spark.sql.", "spark.jars")
OWN = ("spark.sql.catalogImplementation", "spark.sql.warehouse.dir")
"""Settings of which the other process has its own: two processes cannot share an embedded metastore."""


def save_functions(build: Build, write: Write | None, path: Path) -> None:
    """Pickle the user's functions into a file, so that another process has them without their module."""
    pickler: Any = cloudpickle  # it has no types
    try:
        with _by_value(build, write):
            pickled = pickler.dumps((build, write))
        pickler.loads(pickled)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(
            f"build and write cannot be sent to another process ({why}): they must "
            "not hold sessions, DataFrames, locks, files and the like; make them where they are used"
        ) from error
    with whole_file(path) as file:
        file.write(pickled)


@contextmanager
def _by_value(*functions: Any) -> Iterator[None]:
    """Have what the modules of these functions define pickled as it is: a test is not importable there."""
    pickler: Any = cloudpickle
    names = {getattr(function, "__module__", None) for function in functions}
    modules = [sys.modules[name] for name in names - {None, "__main__"} if name in sys.modules]
    mine = [m for m in modules if m.__name__ not in pickler.list_registry_pickle_by_value()]
    for module in mine:
        pickler.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in mine:
            pickler.unregister_pickle_by_value(module)


def inherited_environment() -> dict[str, str]:
    """The environment of this process, in which Python finds the same modules, and no Java of others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(GATEWAY)}
    return {**kept, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def inherited_settings(spark: SparkSession) -> dict[str, str]:
    """The settings of the user's session that a query may depend on."""
    started = dict(spark.sparkContext.getConf().getAll())
    every = {**started, **{name: str(value) for name, value in spark.conf.getAll.items()}}
    return {n: v for n, v in every.items() if n.startswith(INHERITED) and n not in OWN}
