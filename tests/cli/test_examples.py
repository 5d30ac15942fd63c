"""The shipped scenarios: all are read, and they are played and copied by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.calling import EXAMPLE, ROOT

from kubetide.cli.main import cli
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.simulate.scenarios.shipped import scenario_path


def test_the_shipped_scenarios_are_read(tmp_path):
    """Every example is a scenario, and the one that `up` plays ships with the package."""
    from kubetide.cli.up import SHIPPED

    trace = tmp_path / "trace.csv"
    trace.touch()
    found = {}
    for path in ROOT.glob("examples/*.yaml"):
        if "manifests" not in path.name:
            found[path.stem] = load_scenario(path, trace=trace if "trace:" in path.read_text() else None).name
    assert found.pop("autothrottle") == "autothrottle-diurnal-2"
    assert sorted(found) == [
        "bad-day",
        "capacity-buffer",
        "elastic-day",
        "from-zero-wrong-catalogue",
        "gpu-claims",
        "hpa-and-vpa",
        "morning-ramp",
        "new-groups",
        "playground",
        "provisioning-request",
        "queue-workers",
        "stock-out",
        "vertical",
        "vpa-day",
        "web-shop",
        "worldcup98",
    ]
    assert all(stem == name for stem, name in found.items())
    assert SHIPPED.samefile(ROOT / "examples" / "web-shop.yaml")


def test_examples_are_played_and_copied_by_name(tmp_path, monkeypatch):
    """From any folder: the list names all, a copy has all that it needs, and a near miss is reported."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        return CliRunner().invoke(cli, words)

    listed = run("examples")
    assert listed.exit_code == 0
    names = [line.split()[0] for line in listed.output.splitlines()[:-2]]
    assert names == sorted(names)
    assert {"web-shop", "crontab", "bad-day", "autothrottle"} <= set(names)
    assert "Needs --trace requests_per_minute" in listed.output
    for name in names:
        assert run("examples", name).exit_code == 0
        trace = EXAMPLE.with_name("diurnal-2.txt.gz") if name == "worldcup98" else None
        path = tmp_path / name / f"{name}.yaml"
        path = path.with_name("scenario.yaml") if path.with_name("scenario.yaml").exists() else path
        load_scenario(path, trace=trace)
    assert "is there already" in str(run("examples", "web-shop").exception)
    assert scenario_path(Path("web-shop")) == Path("web-shop/web-shop.yaml")
    near = str(run("simulate", "web-shp").exception)
    assert near == "web-shp: there is no such file and no example of that name; did you mean `web-shop`?"
    unknown = run("simulate", "worldcup98")
    assert "It is to be had from https://" in str(unknown.exception)


@pytest.mark.slow
def test_an_example_is_played_by_its_name(tmp_path):
    """`simulate NAME` needs no path, and an example with a shipped trace needs none either."""
    run = CliRunner().invoke(cli, ["simulate", "autothrottle", "--out", str(tmp_path)])
    assert (run.exit_code, run.output.startswith("autothrottle-diurnal-2")) == (0, True)
