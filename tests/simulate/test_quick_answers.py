"""Answers from records load only the modules that they need."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.simulate.worlds import small

from kubetide.loop import BUILT_IN, EXPLAINED, explaining, loop_entry, loop_names
from kubetide.runtime.recording.index_lines import index_of
from kubetide.runtime.recording.records import segments
from kubetide.simulate.answers.why import explain_object, explained_kinds, objects_of
from kubetide.simulate.run import run_simulation

LOADED = (
    "import sys; sys.argv[1:] = {words!r}\nfrom kubetide.cli.main import main\nmain()\nprint(*sys.modules)"
)


def test_the_short_way_is_that_of_the_entries():
    """A loop's explanations are those of its entry; the table of kinds has those of all loops that run by default."""
    for name in loop_names():
        assert explaining(name) == loop_entry(name).explaining
    kinds = {one.kind: name for name in BUILT_IN for one in loop_entry(name).explainers}
    assert kinds == EXPLAINED
    views = {one.kind: one.views for name in BUILT_IN for one in loop_entry(name).explainers}
    assert explained_kinds() == views


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    run_simulation(small(duration="2m"), base=folder, out=folder, seed=1, warn=pytest.fail)
    return folder


def test_an_hpa_needs_neither_controllers_nor_the_scheduler(out):
    """`explain hpa` loads the core of its loop, no controller, no HTTP client, and nothing of the other loops."""
    words = ["explain", "hpa", "web", "--out", str(out)]
    run = subprocess.run(
        [sys.executable, "-c", LOADED.format(words=words)], capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert "kubetide.horizontal.core" in loaded
    unwanted = (
        "kubetide.horizontal.controller",
        "kubetide.nodes",
        "kubetide.scheduling",
        "kubetide.embedded",
        "aiohttp",
        "asyncio",
        "email",
        "ssl",
        "yaml",
    )
    assert not [name for name in unwanted if name in loaded]


@pytest.mark.parametrize("command", ["status", "plan"])
def test_installed_packages_are_not_searched_for_loops_of_this_one(out, command):
    """Records of shipped loops alone are read without a look at what is installed."""
    words = [command, "--out", str(out)]
    run = subprocess.run(
        [sys.executable, "-c", LOADED.format(words=words)], capture_output=True, text=True, check=True
    )
    assert "importlib.metadata" not in run.stdout.split()


def test_answers_are_the_same_without_an_index(out):
    """Every object of the run, with the index and without."""

    def answers():
        return {
            (kind, name): explain_object(
                out, kind, name.rpartition("/")[2], namespace=name.rpartition("/")[0] or "default", at=None
            )
            for kind, names in objects_of(out, None).items()
            for name in names
        }

    with_index = answers()
    assert len(with_index) > 3
    for loop in ("horizontal", "nodes"):
        for segment in segments(out, loop):
            index_of(segment).unlink()
    assert answers() == with_index
