"""The process from which Spark forks its Python workers, with all that a slot imports already imported.

Spark starts one such daemon per executor. A slot that is lost is started again by a fork, which is a matter
of milliseconds; what takes time is that each new process imports numpy, Arrow and Snapline again. Here that
is done once, before the first fork, and kernels are loaded, too, if they were compiled before. It is used
only in sessions that Snapline starts itself: a session of the user's keeps Spark's own daemon, with which
slots take longer to start.
"""

from importlib import import_module

from pyspark.daemon import manager

from snapline.kernels import cache

MODULES = ("pyarrow", "pyspark.worker", "snapline.runtime.launch.spark")

if __name__ == "__main__":
    for module in MODULES:
        import_module(module)
    if cache.compiled_before():
        cache.load()
    manager()
