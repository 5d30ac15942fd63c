"""The commands as a person calls them: help, wrong arguments, names, and what the pages say of them."""

from __future__ import annotations

import os
import re
import subprocess

import msgspec
import pytest
from click.testing import CliRunner
from tests.cli.calling import EXAMPLE, KUBETIDE, ROOT
from tests.simulate.worlds import small

from kubetide.cli.main import cli
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import Scenario
from kubetide.simulate.scenarios.spec import FAULT_KINDS


@pytest.mark.parametrize(
    "name",
    [
        "up",
        "simulate",
        "what-if",
        "capture",
        "sweep",
        "tune",
        "test",
        "ui",
        "examples",
        "explain",
        "status",
        "doctor",
        "replay",
    ],
)
def test_every_command_helps_with_examples(name):
    """The help page of a command says what it is for and shows how it is called."""
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert "Examples:\n" in result.output
    assert f"    kubetide {name} " in result.output


@pytest.mark.parametrize("name", ["catalog", "cloud", "config", "expander", "install"])
def test_groups_list_their_commands_with_whole_sentences(name):
    """No sentence of the list is cut to what is left of a line."""
    listed = CliRunner().invoke(cli, [name, "--help"]).output.partition("Commands:")[2]
    assert listed
    assert "..." not in listed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "missing.yaml"], "missing.yaml: cannot be read"),
        (["up", str(EXAMPLE), "--until", "soon"], "'soon' is neither a time"),
        (["up", str(EXAMPLE), "--until", "0s"], "not after the start"),
        *(
            (["up", str(EXAMPLE), "--speed", speed], "greater than 0 and at most 100,000")
            for speed in ("0", "nan", "inf", "1e30")
        ),
        (["simulate", str(EXAMPLE), "--trace", "nope.csv"], "--trace: there is no file nope.csv"),
        (["replay", "nowhere"], "no records under nowhere"),
        (["advise", str(EXAMPLE), "--top", "-1"], "-1 is not in the range"),
    ],
)
def test_errors_are_one_line_with_the_fix(arguments, words, tmp_path):
    """A mistake of the caller gives one sentence and no traceback."""
    run = subprocess.run(
        [*KUBETIDE, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env=os.environ | {"COLUMNS": "100"},
    )
    assert run.returncode in {1, 2}
    assert words in run.stderr
    assert "Traceback" not in run.stderr


def test_no_text_installs_what_no_index_has():
    """Until the package is on an index, an extra is installed by the names of its packages."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]
    assert [str(path) for path in texts if re.search(r"pip install\s+['\"]?kubetide", path.read_text())] == []


def fields_of(part: type[msgspec.Struct]) -> set[str]:
    return set(part.__struct_encode_fields__)


def test_every_field_of_a_scenario_is_documented():
    """docs/scenarios.md names every field that a scenario may have, and every fault."""
    page = (ROOT / "docs" / "scenarios.md").read_text()
    parts = [Scenario, *Scenario.__mro__[1].__subclasses__()]
    names = set().union(*(fields_of(part) for part in parts))
    names.update(FAULT_KINDS)
    assert not [name for name in sorted(names) if f"`{name}`" not in page]


@pytest.mark.parametrize("address", ["my-shop.yaml", "127.0.0.1", "127.0.0.1:123456", ":80"])
def test_serving_requires_an_address(address, tmp_path):
    """`up --serve` says how an address is written, before anything is run."""
    result = CliRunner().invoke(cli, ["up", "--serve", address, "--out", str(tmp_path)])
    assert "write HOST:PORT" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_explain_takes_the_names_that_it_suggests(tmp_path):
    """A pod or an HPA is named with its namespace, in one word or in two."""
    scenario = small(duration="1m")
    run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail)

    def explain(*words):
        return CliRunner().invoke(cli, ["explain", "hpa", *words, "--out", str(tmp_path)])

    assert "hpa default/web at" in explain("default/web").output
    assert explain("default/web").output == explain("web").output
    assert explain("default/web", "-n", "default").exit_code == 0
    refused = explain("default/web", "-n", "shop")
    assert (refused.exit_code, "names another namespace than --namespace shop" in refused.output) == (2, True)
    suggested = re.search(r"did you mean ([\w/]+)\?", str(explain("wbe").exception))
    assert suggested is not None
    assert explain(suggested[1]).exit_code == 0
