"""What the simulator does not need to be there: it starts quickly, and runs where no Spark is installed."""

import subprocess
import sys

PROGRAM = """
import sys
import snapline.cli.simulate
import snapline.sim.run
from importlib import import_module
from pkgutil import iter_modules
from snapline.sim import exhaustive
for module in iter_modules(exhaustive.__path__):
    import_module(f"{exhaustive.__name__}.{module.name}")
snapline.sim.run.simulate(snapline.sim.run.Case("aligned", "mst", 5, records=20))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_simulator_imports_neither_spark_nor_arrow_nor_pandas():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    imported = set(run.stdout.split())
    assert "snapline" in imported
    assert imported.isdisjoint({"pyarrow", "pyspark", "pandas"})
