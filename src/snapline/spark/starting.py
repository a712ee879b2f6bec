"""Starts a Spark of our own so that a signal at any moment ends it and leaves nothing behind.

A signal handler of Python raises in the main thread, between any two of its steps. While Spark is being
started that would be fatal in three ways: a Java that nobody knows yet is left behind; a half-read answer
of Java is taken for the answer to the next question; and Spark takes Ctrl-C for itself. So Spark is started
in a thread of its own, which no signal reaches, and the main thread only waits. If the wait is interrupted,
the Java that was launched is ended, the starting thread fails because of that and is waited for, and what
PySpark remembers of it is forgotten, so that the same program can start another. Nothing is printed of
what PySpark and py4j have to say about a Java that has ended: the user has asked for that end.
"""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from subprocess import Popen, TimeoutExpired
from typing import Any, Generic, TypeVar

from py4j import java_gateway as py4j_gateway
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from snapline.spark.java import find_java, java_home

T = TypeVar("T")

POLL_S = 0.05
END_S_MAX = 20.0
"""How long Java may take to end when it is told to; after that it is killed."""

#: Failures of tasks are reported as `SlotFailure`, so only Spark's own errors are logged. The level of the
#: gateway must be that of the root, or Spark changes it and prints a line about that.
QUIET_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %m%n%ex{short}
logger.executor.name = org.apache.spark.executor
logger.executor.level = off
logger.scheduler.name = org.apache.spark.scheduler
logger.scheduler.level = off
logger.python.name = org.apache.spark.api.python
logger.python.level = off
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.deploy.name = org.apache.spark.deploy
logger.deploy.level = off
logger.task.name = org.apache.spark.TaskContextImpl
logger.task.level = off
"""


def start_session(make: Callable[[], SparkSession]) -> SparkSession:
    """Make a session of our own. If this is interrupted, the Java that it has launched is ended."""
    _keep_py4j_off_the_root_logger()
    children: list[Popen[Any]] = []
    with _noting_children(children):
        call = Aside(make)
        try:
            session = call.result()
            with held():
                _activate(session)
            return session
        except BaseException:
            with held(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PySpark warns that its Java has ended
                _end(children, call)
            raise


def stop_session(session: SparkSession) -> None:
    """Stop a session of our own; signals that come meanwhile wait until it has stopped."""
    with held():
        session.stop()


class Aside(Generic[T]):
    """A call made in a thread of its own, so that no signal interrupts it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._done = threading.Event()
        self._found: list[T] = []
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="snapline aside", daemon=True).start()

    def _run(self) -> None:
        try:
            self._found.append(self._make())
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the call. Returns whether it has ended."""
        return self._done.wait(seconds)

    def result(self) -> T:
        """Return what the call returned, or raise what it raised; a signal may interrupt the wait."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._found[0]


@contextmanager
def held() -> Iterator[None]:
    """Hold back SIGINT and SIGTERM inside this block; they are delivered at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def _noting_children(children: list[Popen[Any]]) -> Iterator[None]:
    """Collect the Java processes that Spark launches: Spark itself reports one only when it is ready."""
    gateway: Any = java_gateway  # PySpark does not type this module
    launch = gateway.Popen

    def noted(*args: Any, **kwargs: Any) -> Any:
        child = launch(*args, **kwargs)
        children.append(child)
        return child

    gateway.Popen = noted
    try:
        yield
    finally:
        gateway.Popen = launch


def _end(children: list[Popen[Any]], call: Aside[Any]) -> None:
    """End the Java that a call has launched, or is about to, and wait for the end of both."""
    deadline_s = time.monotonic() + END_S_MAX
    while time.monotonic() < deadline_s:
        for child in children:
            child.kill()
        if call.wait(POLL_S):
            break
    for child in children:
        child.kill()
        with suppress(TimeoutExpired):
            child.wait(END_S_MAX)
    if children:
        _forget()


def _keep_py4j_off_the_root_logger() -> None:
    """Let py4j log a broken connection through its own logger, as it does everything else.

    It uses the functions of the module `logging` for that. They write to the root logger and, in a program
    that has not configured logging, make it print a traceback on the terminal.
    """
    gateway: Any = py4j_gateway
    gateway.logging = gateway.logger


def _activate(session: SparkSession) -> None:
    """Make a session the active one of this thread, too: it was made in another thread."""
    java: Any = session._jvm
    java.SparkSession.setActiveSession(session._jsparkSession)


def _forget() -> None:
    """Make PySpark forget the Java that has ended: it would go on talking to it otherwise."""
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


# Where Spark starts: what it logs, and its environment.


def launch_environment() -> Mapping[str, str | None]:
    """What Spark's start scripts and workers read from the environment; None takes a variable away."""
    return {
        "JAVA_HOME": str(java_home(find_java())),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Slots can import whatever this process can, such as a file beside a flow.
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Variables that choose another Spark, its settings or its server were meant for other programs.
        "SPARK_HOME": None,
        "SPARK_CONF_DIR": None,
        "SPARK_REMOTE": None,
        "PYSPARK_SUBMIT_ARGS": None,
    }


@contextmanager
def environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """The environment with these changes, and afterwards as it was."""
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set_environment(changes)
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
