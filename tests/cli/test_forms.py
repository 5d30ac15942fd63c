"""Forms of answers, short names, hints, exit statuses: what people of kubectl expect."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner
from tests.docs.tables import DOCS, rows, section
from tests.simulate.worlds import small

from kubetide.cli.common import exits
from kubetide.cli.main import cli
from kubetide.simulate.run import run_simulation


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The records of two minutes."""
    folder = tmp_path_factory.mktemp("forms")
    run_simulation(small(duration="2m"), base=folder, out=folder, seed=1, warn=pytest.fail)
    return folder


def said(*words):
    result = CliRunner().invoke(cli, list(map(str, words)))
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


@pytest.mark.parametrize("short", ["hpa web", "hpas web", "HPA default/web", "hpa/web", "deploy web", "deploy/web", "deployments default/web"])  # fmt: skip
def test_other_words_for_an_hpa(out, short):
    """Short names, plurals, KIND/NAME, and the Deployment that an HPA scales: one answer."""
    assert said("explain", *short.split(), "--out", out) == said("explain", "hpa", "web", "--out", out)


@pytest.mark.parametrize(("short", "kind"), [("po", "pod"), ("no", "node"), ("ng", "nodegroup")])
def test_kubectls_short_names(out, short, kind):
    """po, no and ng are pod, node and nodegroup: the same hint for a name that is not there."""

    def hint(word):
        return str(CliRunner().invoke(cli, ["explain", word, "nobody", "--out", str(out)]).exception)

    assert hint(short) == hint(kind)
    assert hint(kind).startswith(f"no {kind} ")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["simulte"], "no such command 'simulte'; did you mean simulate?"),
        (["xyzzy"], "no such command 'xyzzy'; `kubetide --help` lists the commands"),
        (["explain", "depoly", "web"], "did you mean deploy?"),
        (["explain", "cronjob", "web"], "no loop scales a cronjob: ask about one of its pods"),
        (["explain", "pod"], "which pod? write pod NAME or pod/NAME"),
        (["explain", "vpa"], "which vpa? write vpa NAME or vpa/NAME; none is known at the end"),
        (["explain", "foo"], "'foo' is not one of"),
        (["explain", "hpa"], "which hpa? write hpa NAME or hpa/NAME; there are default/web"),
        (["explain", "deploy", "wbe"], "nothing scales Deployment default/wbe; did you mean default/web?"),
        (["examples", "web-shp"], "did you mean web-shop?"),
        (["explain", "hpa", "web", "--namespac=a"], "Did you mean '--namespace'?"),
    ],
)
def test_a_slip_of_the_pen_gets_a_hint(out, words, hint):
    """Commands, kinds, names and flags that are nearly right."""
    more = ["--out", str(out)] if words[0] == "explain" else []
    result = CliRunner().invoke(cli, [*words, *more])
    assert result.exit_code != 0
    assert hint in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["explain", "hpa", "web"], "lines"),
        (["status"], "loops"),
        (["examples"], "examples"),
        (["config", "check", "--scan-interval=20s"], "settings"),
    ],
)
def test_json_and_yaml_say_the_same(out, words, key):
    """Commands that print facts print them for programs too."""
    more = ["--out", str(out)] if words[0] in {"explain", "status"} else []
    as_json = json.loads(said(*words, *more, "-o", "json"))
    assert as_json == yaml.safe_load(said(*words, *more, "-o", "yaml"))
    assert as_json[key]


def test_an_explanation_as_data_is_that_of_the_text(out):
    """The fields hold every line of the text, and wide text has all decisions with their reasons."""
    data = json.loads(said("explain", "hpa", "web", "--out", out, "-o", "json"))
    text = said("explain", "hpa", "web", "--out", out, "-o", "wide")
    assert text.startswith(f"{data['kind']} {data['name']} at {data['at']}\n")
    expected = [*data["lines"], *(f"{one['at']} {one['text']}" for one in (*data["now"], *data["before"]))]
    assert [line for line in expected if f"  {line}\n" not in f"{text}\n"] == []


def test_wide_has_more_columns():
    """The length, the loops and the file of each example are in its row."""
    head, first, *_ = said("examples", "-o", "wide").splitlines()
    assert head.split() == ["NAME", "DURATION", "LOOPS", "FILE", "ABOUT"]
    assert re.search(r"\.yaml  ", first)


def test_exit_statuses_are_one_table():
    """docs/usage.md has each status of ``kubetide.cli.common.exits``, and 0, and no other."""
    table = section((DOCS / "usage.md").read_text(encoding="utf-8"), "## Exit statuses")
    documented = {int(row[0].strip("`")) for row in rows(table)}
    known = {value for name, value in vars(exits).items() if name.isupper()}
    assert documented == {0, *known}


@pytest.mark.parametrize(
    ("words", "status"),
    [(["examples"], 0), (["status", "--out", "/nowhere"], exits.FAILED), (["simulte"], exits.USAGE)],
)
def test_statuses_of_the_process(words, status):
    """The exit statuses that a script sees."""
    command = [sys.executable, "-m", "kubetide", *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == status, run.stderr


def test_no_colour_reaches_a_pipe(out):
    """Output that is no terminal's has no escape sequence, whatever TERM says."""
    command = [sys.executable, "-m", "kubetide", "status", "--out", str(out)]
    environment = {**os.environ, "TERM": "xterm-256color", "FORCE_COLOR": "", "NO_COLOR": ""}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "\x1b" not in run.stdout + run.stderr
