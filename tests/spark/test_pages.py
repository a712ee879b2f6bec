"""The pages of a Spark that Snapline starts itself: kept if asked for, and for this machine only."""

import json
import re
import sys
import urllib.request

import pytest

from snapline.cli.app import main
from snapline.runs import drive as drive_module
from snapline.runs import run as run_module

pytestmark = pytest.mark.spark


def test_a_run_tells_where_its_pages_are_and_they_name_its_slots(tmp_path, monkeypatch, capfd):
    """They are asked while slots run: a page of a Spark that has ended cannot be."""
    shown: list[str] = []
    drive = drive_module.drive

    def asked(*given, prepare, **settings):
        def look(driver):
            prepare(driver)
            driver.watch = lambda entry: shown.extend([] if shown else names_of(capfd, driver))

        return drive(*given, prepare=look, **settings)

    monkeypatch.setattr(run_module, "drive", asked)
    few = "--slots 1 --rate 100 --duration 1s --interval 300ms --ui --runs"
    monkeypatch.setattr(sys, "argv", ["snapline", "run", "q12", *few.split(), str(tmp_path)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    assert shown == ["q12/slot 0/epoch 1"]


def names_of(capfd, driver):
    """How the jobs are called, if slots run."""
    if not driver.begun:
        return []
    said = capfd.readouterr().err
    (url,) = re.findall(r"Spark's pages are at (http://127\.0\.0\.1:[0-9]+) ", said)
    (application,) = asked_for(f"{url}/api/v1/applications")
    jobs = asked_for(f"{url}/api/v1/applications/{application['id']}/jobs")
    return [job["description"] for job in jobs]


def asked_for(url):
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)
