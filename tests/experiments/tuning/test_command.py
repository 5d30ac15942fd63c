"""`kubetide tune` as a person calls it."""

from __future__ import annotations

import csv

import pytest
import yaml
from click.testing import CliRunner
from tests.experiments.jobs import JOBS

from kubetide.cli.main import cli


def invoke(command, *arguments):
    return CliRunner().invoke(cli, [command, *map(str, arguments)])


@pytest.mark.slow
def test_a_search_and_its_evaluation(shop, tmp_path):
    """The cheapest setting within the bound is evaluated on other seeds; its patch sets the tried values; nothing is stale."""
    out = tmp_path / "out"
    arguments = [
        shop, "--knob", "hpa/web.target=40,60,90", "--knob", "group/general.min=1,2",
        "--minimize", "podMinutes", "--keep", "unserved <= now", "--seeds", 1, "--jobs", 2,
    ]  # fmt: skip
    result = invoke("tune", *arguments, "--out", out)
    assert result.exit_code in (0, 1), result.output
    rows = list(csv.DictReader((out / "trials.csv").read_text().splitlines()))
    assert len(rows) == 6
    valid = [row for row in rows if row["kept"] == "1"]
    best = min(valid, key=lambda row: float(row["podMinutes"]))
    assert f"  hpa/web.target={best['hpa/web.target']}\n" in result.output
    assert yaml.safe_load((out / "settings.yaml").read_text())["set"]["hpa/web.target"] == int(
        best["hpa/web.target"]
    )
    assert "on 1 runs that the search has not seen:" in result.output
    assert ("there it does not keep" in result.output) == (result.exit_code == 1)
    assert (out / "what-if" / "what-if.html").exists()

    [patch] = yaml.safe_load_all((out / "patch.yaml").read_text())
    assert (patch["kind"], patch["metadata"]) == ("HorizontalPodAutoscaler", {"name": "web"})
    both = invoke("what-if", shop, "--patch", out / "patch.yaml", "--seed", 2, "--out", tmp_path / "w")
    assert both.exit_code == 0
    folder = out / "what-if" / "changed" / "timeline.json"
    assert (tmp_path / "w" / "changed" / "timeline.json").read_bytes() == folder.read_bytes()

    assert "go on with --resume" in str(invoke("tune", *arguments, "--out", out).exception)
    again = invoke("tune", *arguments, "--out", out, "--resume")
    assert again.output == result.output


@pytest.mark.slow
def test_nothing_better(shop, tmp_path):
    """Where no setting within the bounds is cheaper, there is no patch, and the exit status is 1."""
    result = invoke("tune", shop, "--knob", "hpa/web.target=20,30", "--minimize", "podMinutes", "--seeds", 1, "--out", tmp_path / "out")  # fmt: skip
    assert result.exit_code == 1
    assert "none of these has a lower podMinutes than the scenario as it is" in result.output
    assert not (tmp_path / "out" / "patch.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ((), "Missing option '--knob'"),
        (("--knob", "hpa/wob.target=1:2"), "there is no HorizontalPodAutoscaler `wob`"),
        (("--knob", "expander=price,random", "--keep", "cost <="), "--keep cost <="),
        (("--knob", "expander=price,random", "--minimize", "costs"), "--minimize costs: there are cost,"),
        (("--knob", "expander=price,random", "--train", "start=x"), "start"),
    ],
)
def test_searches_that_cannot_be_made(shop, tmp_path, arguments, reported):
    """Wrong arguments are reported before anything runs."""
    result = invoke("tune", shop, *arguments, "--out", tmp_path / "out")
    assert result.exit_code != 0
    assert reported in result.output + str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_without_services_pods_are_kept_from_waiting(tmp_path):
    """Half the nodes are cheaper, and half the pods never run: that is no better result."""
    (tmp_path / "jobs.yaml").write_text(JOBS)
    result = invoke("tune", tmp_path / "jobs.yaml", "--knob", "group/workers.max=1,2", "--seeds", 1, "--out", tmp_path / "out")  # fmt: skip
    assert result.exit_code == 1, result.output
    assert "pendingPodMinutes <= now" in result.output
    rows = list(csv.DictReader((tmp_path / "out" / "trials.csv").read_text().splitlines()))
    assert {row["group/workers.max"]: row["kept"] for row in rows} == {"1": "0", "2": "1"}
