"""`snapline explore` as a user meets it: what is covered is said, whatever ends the search."""

import json
import sys

import pytest

from snapline.cli import explore as cli_explore
from snapline.cli.app import main
from snapline.core.effects import Block, Unblock
from snapline.engine.slot.task import Task
from snapline.sim.exhaustive.search import Search


def run(monkeypatch, capsys, *words):
    """The exit code of a command, and what it printed."""
    monkeypatch.setattr(sys, "argv", ["snapline", "explore", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


def forgetting_what_is_blocked(perform):
    """A task that reads blocked channels all the same."""
    return lambda task, effect: (
        None if isinstance(effect, Block | Unblock) else perform(task, effect)
    )


ONE = ("--protocol", "none", "--graph", "chain", "--records", "1")


def test_what_was_covered_is_said(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, *ONE, "--budget", "0ms")
    assert code == 0
    assert "all runs with up to 0 deviations, and 0.0 % of those with 1" in out
    assert "no counterexample in what was covered" in out


def test_json_has_the_numbers(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, *ONE, "--budget", "0ms", "--json")
    [space] = json.loads(out)["spaces"]
    assert (code, space["complete_through"], space["runs"]) == (0, 0, 1)


def test_an_interrupted_search_says_what_it_has_covered(monkeypatch, capsys):
    execute = Search._execute

    def interrupted(self, plan):
        if self.coverage.runs == 3:
            raise KeyboardInterrupt
        return execute(self, plan)

    monkeypatch.setattr(Search, "_execute", interrupted)
    code, out, _ = run(monkeypatch, capsys, *ONE)
    assert code == 130
    assert "all runs with up to 0 deviations, and 3.3 % of those with 1" in out
    assert "interrupted" in out


def test_a_counterexample_is_told_and_can_be_repeated(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    aligned = ("--protocol", "aligned", "--graph", "chain", "--budget", "0ms")
    with monkeypatch.context() as patch:
        patch.setattr(Task, "perform", forgetting_what_is_blocked(Task.perform))
        code, out, _ = run(monkeypatch, capsys, *aligned)
        assert code == 1
        assert "broken blocked_channel_is_not_read: aligned on chain" in out
        assert "records/0 takes CHECKPOINT 1.1; records/0 sends marker 1.1 on" in out
        file = "snapline-counterexample-aligned-chain.json"
        assert f"repeat with: snapline explore --repeat {file}" in out
        code, again, _ = run(monkeypatch, capsys, "--repeat", file)
        assert code == 1
        assert again.strip().splitlines()[0] in out
    code, out, _ = run(monkeypatch, capsys, "--repeat", file)
    assert (code, out) == (0, "kept: these steps break nothing any more\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--graph", "tree"), "there is no graph 'tree'"),
        (("--protocol", "aligned", "--graph", "cycle"), "aligned cannot run a cycle"),
        (("--budget", "long"), "--budget is written as"),
        (("--repeat", "none.json"), "cannot read none.json"),
        (("--repeat", "none.json", "--graph", "chain"), "leave the other options out"),
    ],
)
def test_bad_input_gets_one_message(monkeypatch, capsys, words, message):
    code, _, err = run(monkeypatch, capsys, *words)
    assert code == 2
    assert message in err


def test_progress_is_said_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(cli_explore, "PROGRESS_EVERY_S", 0.0)
    _, _, err = run(monkeypatch, capsys, *ONE, "--budget", "0ms")
    assert "none on chain: 1 run," in err
