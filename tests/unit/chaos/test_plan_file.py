"""Faults from files: `@plan.txt`."""

import pytest

from snapline.chaos.plan_file import read_plan
from snapline.errors import FaultSyntaxError, UsageError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_stands_for_its_statements(here):
    (here / "plan.txt").write_text(
        "# a bad day\nkill slot=1 at=1s\n\n store outage at=2s for=1s # away\n"
    )
    assert read_plan("@plan.txt") == "kill slot=1 at=1s; store outage at=2s for=1s"
    assert read_plan(f"@{here / 'plan.txt'}") == read_plan(" @plan.txt ")


def test_a_text_stands_for_itself():
    assert (
        read_plan("kill slot=1 at=1s;damage slot=0 at=2s")
        == "kill slot=1 at=1s; damage slot=0 at=2s"
    )
    assert read_plan("") == ""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("@nowhere.txt", None, "cannot read the faults in nowhere.txt: No such file"),
        ("@.", None, "cannot read the faults in .: Is a directory"),
        ("@plan.txt", b"\xff\xfe\x00", "cannot read the faults in plan.txt: it is no text"),
        (
            "plan.txt",
            b"kill slot=1 at=1s",
            "plan.txt is a file: to have its faults, name it as @plan.txt",
        ),
    ],
)
def test_what_cannot_be_read_is_one_message(here, name, content, message):
    if content is not None:
        (here / "plan.txt").write_bytes(content)
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        read_plan(name)


def test_what_is_wrong_in_a_file_is_shown_with_its_name(here):
    (here / "plan.txt").write_text("kill slot=1 at=1s\ntickle slot=1 at=2s\n")
    with pytest.raises(FaultSyntaxError) as error:
        read_plan("@plan.txt")
    assert str(error.value).startswith("in plan.txt: 'tickle' is not known here")
    assert "  tickle slot=1 at=2s\n  ^^^^^^" in str(error.value)
