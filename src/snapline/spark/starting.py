"""Starts a Spark of our own so that a signal at any moment ends it and leaves nothing behind.

A signal handler of Python raises in the main thread, between any two of its steps. While Spark is being
started that would be fatal in three ways: a Java that nobody knows yet is left behind; a half-read answer
of Java is taken for the answer to the next question; and Spark takes Ctrl-C for itself. So Spark is started
in a thread of its own, which no signal reaches, and the main thread only waits. If the wait is interrupted,
the Java that was launched is ended, the starting thread fails because of that and is waited for, and what
PySpark remembers of it is forgotten, so that the same program can start another. Nothing is printed of
what PySpark and py4j have to say about a Java that has ended: the user has asked for that end.
"""

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from subprocess import Popen, TimeoutExpired
from typing import Any, Generic, TypeVar

from py4j import java_gateway as py4j_gateway
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

T = TypeVar("T")

POLL_S = 0.05
END_S_MAX = 20.0
"""How long Java may take to end when it is told to; after that it is killed."""


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
