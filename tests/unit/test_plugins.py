"""What installed distributions bring is found by its name; what is broken or taken breaks nobody else."""

import json
import subprocess
import sys

import pytest

from plugged_in import install, write_distribution
from snapline.arguments import one_of
from snapline.cli.app import main
from snapline.errors import UsageError
from snapline.plugins import Catalogue, unfit
from snapline.protocols import PROTOCOLS
from snapline.systems.registry import SYSTEMS, system_of
from snapline.workload import WORKLOADS

OWN = ["none", "aligned", "aligned-cyclic", "unaligned", "synchronous", "uncoordinated", "hmnr"]
OWN += ["bcs", "partial"]
POINTS = """[snapline.protocols]
broken = broken_things:{name}
"""
FIRST_OF_TWO = "[snapline.protocols]\nstaggered = snapline_staggered:STAGGERED\n"
TAKEN = "[snapline.protocols]\naligned = snapline_staggered:STAGGERED\n"
MISNAMED = "[snapline.protocols]\nbroken = snapline_staggered:STAGGERED\n"


def snapline(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["snapline", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0, capsys.readouterr()


def test_a_distribution_brings_a_protocol_a_workload_and_a_system(monkeypatch):
    install(monkeypatch)
    assert [*PROTOCOLS] == [*OWN, "staggered"]
    assert len(PROTOCOLS) == len(OWN) + 1
    assert PROTOCOLS["staggered"].name == "staggered"
    assert [*WORKLOADS][-1] == WORKLOADS["tallies"].name == "tallies"
    assert "loud" in SYSTEMS["echo"].options
    assert PROTOCOLS.problems() == WORKLOADS.problems() == SYSTEMS.problems() == []
    with pytest.raises(UsageError, match="did you mean staggered"):
        one_of("protocol", PROTOCOLS)("stagered", "--protocol")
    with pytest.raises(UsageError, match="did you mean echo"):
        system_of("ecko")


def test_nothing_is_looked_for_while_only_names_of_our_own_are_used():
    code = (
        "import sys, snapline.cli.run, snapline.rundir.spec\n"
        "from snapline.protocols import PROTOCOLS\n"
        "assert 'aligned' in PROTOCOLS and PROTOCOLS['aligned'].name == 'aligned'\n"
        "assert PROTOCOLS._found is None, 'entry points were looked for'\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
        ("thing = 7", "is a int, not a CheckpointProtocol"),
        ("", "cannot be loaded: AttributeError"),
    ],
)
def test_a_broken_one_says_whose_it_is_and_breaks_nobody_else(monkeypatch, tmp_path, code, why):
    points = POINTS.format(name="thing")
    path = write_distribution(tmp_path, "acme", "broken_things", code, points)
    monkeypatch.delitem(sys.modules, "broken_things", raising=False)
    install(monkeypatch, path)
    install(monkeypatch)
    assert [*PROTOCOLS] == [*OWN, "staggered"]
    assert "broken" in PROTOCOLS, "it is refused with its own sentence"
    home = r"the protocol 'broken' of the distribution acme 2.0 \(broken_things:thing\) "
    with pytest.raises(UsageError, match=home + why):
        PROTOCOLS["broken"]
    (problem,) = PROTOCOLS.problems()
    assert why in problem


def test_a_name_that_differs_from_the_entry_point_is_refused(monkeypatch, tmp_path):
    install(monkeypatch, write_distribution(tmp_path, "acme", "unused", "", MISNAMED))
    install(monkeypatch)
    with pytest.raises(UsageError, match="calls itself 'staggered': give its entry point the same"):
        PROTOCOLS["broken"]


def test_a_name_that_two_distributions_bring_is_refused_with_both(monkeypatch, tmp_path):
    install(monkeypatch, write_distribution(tmp_path, "acme", "unused", "", FIRST_OF_TWO))
    install(monkeypatch)
    with pytest.raises(
        UsageError, match=r"acme 2\.0 .* and by the distribution snapline-staggered"
    ):
        PROTOCOLS["staggered"]
    assert [*PROTOCOLS] == OWN


def test_a_name_of_our_own_stays_ours(monkeypatch, tmp_path):
    install(monkeypatch, write_distribution(tmp_path, "acme", "unused", "", TAKEN))
    assert PROTOCOLS["aligned"] is PROTOCOLS.own["aligned"]
    assert [*PROTOCOLS] == OWN
    (problem,) = PROTOCOLS.problems()
    assert (
        "'aligned' of the distribution acme 2.0 (snapline_staggered:STAGGERED) is refused"
        in problem
    )
    assert "snapline.protocols has one of this name" in problem


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("all", "'all' means all that there are, so it needs another name"),
        ("snapline", "'snapline' means Snapline itself, so it needs another name"),
        ("my flow", "a name has small letters and digits"),
        ("Staggered", "a name has small letters and digits"),
        ("flow.py", "a name has small letters and digits"),
        ("../up", "a name has small letters and digits"),
        ("-x", "a name has small letters and digits"),
    ],
)
def test_a_name_that_cannot_be_written_is_refused_and_the_others_stay(
    monkeypatch, tmp_path, capsys, name, why
):
    kinds = ("protocols", "workloads", "systems")
    points = "".join(f"[snapline.{kind}]\n{name} = unused:thing\n" for kind in kinds)
    install(monkeypatch, write_distribution(tmp_path, "acme", "unused", "1 / 0", points))
    install(monkeypatch)
    assert [*PROTOCOLS] == [*OWN, "staggered"]
    code, printed = snapline(monkeypatch, capsys, "list", "--json")
    listed = [row["name"] for kind in kinds for row in json.loads(printed.out)[kind]]
    assert (code, listed.count(name)) == (0, int(name == "snapline"))
    for kind, problem in zip(kinds, printed.err.splitlines(), strict=True):
        assert problem.startswith(f"the {kind[:-1]} {name!r} of the distribution acme 2.0 (unused:")
        assert f"is refused: {why}" in problem
    if name not in ("all", "-x"):
        code, printed = snapline(monkeypatch, capsys, "simulate", "--protocol", name)
        assert (code, why in printed.err) == (2, True)


def test_every_name_of_our_own_is_fit():
    assert [name for kind in (PROTOCOLS, WORKLOADS, SYSTEMS) for name in kind if unfit(name)] == []


def test_a_name_that_nobody_has_is_a_key_error():
    with pytest.raises(KeyError):
        Catalogue("protocol", object, {}, "here")["nobody"]


def test_the_shell_lists_what_can_be_used_and_says_what_cannot(monkeypatch, tmp_path, capsys):
    points = "[snapline.protocols]\nbroken = exploding:thing\n"
    install(monkeypatch, write_distribution(tmp_path, "acme", "exploding", "1 / 0", points))
    install(monkeypatch)
    code, printed = snapline(monkeypatch, capsys, "list", "--json")
    rows = json.loads(printed.out)
    last = [rows[kind][-1]["name"] for kind in ("protocols", "workloads", "systems")]
    assert (code, last) == (0, ["staggered", "tallies", "echo"])
    assert "'broken' of the distribution acme 2.0" in printed.err
    code, printed = snapline(monkeypatch, capsys, "simulate", "--protocol", "broken", "--seed", "1")
    assert code == 2
    assert "cannot be loaded: ZeroDivisionError: division by zero" in printed.err
    assert "Traceback" not in printed.err
