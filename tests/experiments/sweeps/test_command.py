"""`kubetide sweep` as a person calls it."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from click.testing import CliRunner
from tests.browsers import chromium
from tests.experiments.jobs import JOBS
from tests.experiments.summaries import summary_of
from tests.simulate.worlds import small

from kubetide.cli.main import cli
from kubetide.experiments.sweeps.cell import Outcome
from kubetide.experiments.sweeps.grid import Axis
from kubetide.experiments.sweeps.page import write_sweep
from kubetide.experiments.sweeps.results import SLO_MINUTES, effects_of, settings_of
from kubetide.experiments.sweeps.sweep import Cell

TABLES = ("cells.csv", "settings.csv", "sweep.json", "sweep.html")
SETS = ("--set", "hpa/web.target=30,60", "--set", "group/general.max=4,5")
WILD = "</script><b>bold"


def invoke(*arguments):
    return CliRunner().invoke(cli, ["sweep", *map(str, arguments)])


def tables_in(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


@pytest.mark.slow
def test_the_same_tables_from_one_process_and_from_several(shop, tmp_path):
    """Tables, page and output do not depend on how many processes ran the cells."""
    one = invoke(shop, *SETS, "--seeds", 2, "--jobs", 1, "--out", tmp_path / "one")
    assert one.exit_code == 0, one.output
    three = invoke(shop, *SETS, "--seeds", 2, "--jobs", 3, "--out", tmp_path / "three")
    assert tables_in(tmp_path / "one") == tables_in(tmp_path / "three")
    assert one.output.replace("one/", "three/") == three.output
    rows = list(csv.DictReader((tmp_path / "one" / "cells.csv").read_text().splitlines()))
    assert [(row["hpa/web.target"], row["group/general.max"], row["seed"]) for row in rows] == [
        (target, most, seed) for target in ("30", "60") for most in ("4", "5") for seed in ("1", "2")
    ]
    assert float(rows[0]["podMinutes"]) > float(rows[-1]["podMinutes"])

    run = CliRunner().invoke(
        cli, ["what-if", str(shop), "--set", "hpa/web.target=30", "--seed", "2", "--out", str(tmp_path / "w")]
    )
    assert run.exit_code == 0
    summary = json.loads((tmp_path / "w" / "changed" / "summary.json").read_text())
    assert json.loads((tmp_path / "one" / "sweep.json").read_text())["cells"][1]["summary"] == summary


@pytest.mark.slow
def test_without_services_settings_are_judged_by_how_long_pods_wait(tmp_path):
    """No SLO minute can be lost then. One worker costs less, and two let pods wait less: both are on the front."""
    (tmp_path / "jobs.yaml").write_text(JOBS)
    result = invoke(
        tmp_path / "jobs.yaml", "--set", "group/workers.max=1,2", "--seeds", 1, "--out", tmp_path / "s"
    )
    assert result.exit_code == 0, result.output
    assert "* Pareto front: no other setting costs as little and lets pods wait as little" in result.output
    assert "SLO" not in result.output
    assert "settings x 1 seed" in result.output
    rows = list(csv.DictReader((tmp_path / "s" / "settings.csv").read_text().splitlines()))
    assert [row["paretoFront"] for row in rows] == ["1", "1"]
    assert json.loads((tmp_path / "s" / "sweep.json").read_text())["criterion"] == "pendingPodMinutes"
    assert "pending pod-minutes" in (tmp_path / "s" / "sweep.html").read_text()


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on(shop, tmp_path):
    """Killed with -9 and resumed: the cells that were done are not run again, the tables are those of one go."""
    arguments = [str(shop), *SETS, "--seeds", "2", "--jobs", "1"]
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    command = [sys.executable, "-m", "kubetide", "sweep", *arguments, "--out", str(cut)]
    with subprocess.Popen(command) as process:
        while process.poll() is None and len(list((cut / "cells").glob("*.json"))) < 2:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    there = {path: path.stat().st_mtime_ns for path in (cut / "cells").glob("*.json")}
    assert 2 <= len(there) < 8
    assert not (cut / "cells.csv").exists()

    refused = invoke(*arguments, "--out", cut)
    assert " cells: go on with --resume" in str(refused.exception)
    assert invoke(*arguments, "--out", cut, "--resume").exit_code == 0
    assert invoke(*arguments, "--out", whole).exit_code == 0
    assert tables_in(cut) == tables_in(whole)
    assert all(path.stat().st_mtime_ns == at for path, at in there.items())


@pytest.mark.slow
def test_a_cell_that_fails_is_named(shop, tmp_path):
    """A cell that cannot run is named with its settings; the others have their results; the exit status is 1."""
    result = invoke(
        shop,
        "--set",
        "group/general.initial=1,3",
        "--set",
        "group/general.max=2,4",
        "--out",
        tmp_path / "out",
    )
    assert result.exit_code == 1
    assert "1 of 4 cells failed:" in result.output
    assert "group/general.initial=3 group/general.max=2 seed 1: " in result.output
    rows = list(csv.DictReader((tmp_path / "out" / "cells.csv").read_text().splitlines()))
    assert [bool(row["error"]) for row in rows] == [False, False, True, False]
    assert [bool(row["cost"]) for row in rows] == [True, True, False, True]


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ((), "nothing is varied"),
        (("--set", "expander=price", "--dask", "tcp://127.0.0.1:1", "--jobs", "2"), "give one of them"),
        (("--set", "expandr=price,random"), "did you mean `expander`?"),
        (("--set", "hpa/wob.target=1,2"), "there is no HorizontalPodAutoscaler `wob`"),
    ],
)
def test_sweeps_that_cannot_be_read(shop, tmp_path, arguments, reported):
    """Wrong arguments are reported before anything runs."""
    result = invoke(shop, *arguments, "--out", tmp_path / "out")
    assert result.exit_code != 0
    assert reported in result.output + str(result.exception)
    assert not (tmp_path / "out").exists()


def made_cells():
    places = {("a", "1"): (1, 9), ("a", "2"): (2, 5), (WILD, "1"): (3, 6), (WILD, "2"): (4, 1)}
    cells = [
        Cell(values, seed, Outcome(summary=summary_of(cost + seed / 10, lost)))
        for values, (cost, lost) in places.items()
        for seed in (1, 2)
    ]
    return [*cells[:-1], Cell((WILD, "2"), 2, Outcome(error=WILD))]


AXES = (Axis("expander", ("a", WILD)), Axis("target", ("1", "2")))


def test_settings_and_effects():
    """Means over the seeds, the front without the setting that has a failed cell, the mean of each value."""
    settings = settings_of(made_cells(), SLO_MINUTES)
    assert [one.front for one in settings] == [True, True, False, False]
    assert [one.failed for one in settings] == [0, 0, 0, 1]
    assert settings[0].figures["cost"].mean == pytest.approx(1.15)
    effects = effects_of(AXES, settings, SLO_MINUTES)
    assert [(one.name, one.value, one.settings) for one in effects] == [
        ("expander", "a", 2),
        ("expander", WILD, 1),
        ("target", "1", 2),
        ("target", "2", 1),
    ]
    assert [one.criterion for one in effects] == [7.0, 6.0, 7.5, 5.0]


@pytest.mark.browser
@pytest.mark.slow
def test_the_page_in_a_browser(tmp_path):
    """Points, the cells behind the chosen one, tables, failed cells; no name becomes markup."""
    cells = made_cells()
    settings = settings_of(cells, SLO_MINUTES)
    page = tmp_path / "sweep.html"
    effects = effects_of(AXES, settings, SLO_MINUTES)
    write_sweep(page, small().name, AXES, cells, settings, effects, SLO_MINUTES)
    for browser in chromium(tmp_path / "profile"):
        browser.get(page.as_uri())
        assert browser.find_element("css selector", "html").get_attribute("data-ready") == "1"
        assert browser.get_log("browser") == []
        points = browser.find_elements("css selector", "#scatter circle")
        assert [one.get_attribute("class") for one in points] == ["on-front chosen", "on-front", "behind"]
        points[2].click()

        chosen = partial(browser.find_element, "css selector", "#chosen h2")
        assert chosen().text == f"expander={WILD}, target=1 2"
        rows = [row.text.split() for row in browser.find_elements("css selector", "#chosen tbody tr")]
        assert [row[:3] for row in rows] == [["1", "3.10", "6"], ["2", "3.20", "6"]]
        assert browser.find_element("css selector", "#failed li").text == (
            f"expander={WILD}, target=2, seed 2: {WILD}"
        )
        browser.find_elements("css selector", "#settings tbody tr")[1].click()
        assert chosen().text == "expander=a, target=2 2"
        assert browser.find_elements("css selector", "b") == []
