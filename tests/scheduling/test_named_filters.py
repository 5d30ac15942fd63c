"""A filter plug-in of another package decides where a run names it, and nowhere else."""

from __future__ import annotations

import sys
from importlib.metadata import distributions

import msgspec
import pytest
from tests.scheduling.plain import make_node, make_pod
from tests.simulate.worlds import small

from kubetide.clouds.registry import find_cloud
from kubetide.ports.plugins import Plugin, PluginNotUsable
from kubetide.runtime.recording.records import SCHEMA, Header, RecordError, read_records
from kubetide.scheduling import Snapshot, classify
from kubetide.scheduling.filters.in_use import BUILT_IN, filters_in_use, using_filters, with_plugins
from kubetide.scheduling.filters.registry import FILTERS
from kubetide.simulate.answers.recorded_plugins import recorded_plugins
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.answers.why import explain_object
from kubetide.simulate.run import run_simulation

PLUGIN = """
import numpy as np

from kubetide.scheduling import Refusal


class Odd:
    name = "Odd"

    def passes(self, pod, rows):
        return np.array([not name.endswith(("2", "4")) for name in rows.names])

    def refuse(self, pod, rows, row):
        return None if self.passes(pod, rows)[row] else Refusal(plugin=self.name, reasons=("node(s) were even",))

    def failures(self, pod, rows):
        return [("node(s) were even", ~self.passes(pod, rows))]


class Nothing:
    name = "Nothing"
"""


def install(folder, entry="oddity:Odd", version="1.0"):
    """Put a package with one filter and one cloud where Python finds it."""
    folder.mkdir(exist_ok=True)
    (folder / "oddity.py").write_text(PLUGIN)
    info = folder / "oddity.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: oddity\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(
        f"[kubetide.filters]\nodd = {entry}\n[kubetide.clouds]\nodd-cloud = {entry}\n"
    )


@pytest.fixture
def packages(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.delitem(sys.modules, "oddity", raising=False)
    return tmp_path / "packages"


def verdicts():
    snapshot = Snapshot()
    for name in ("n1", "n2"):
        snapshot.set_node(make_node(name))
    pod = classify(make_pod())
    return snapshot.feasible(pod).tolist(), snapshot.refusals(pod)


def test_a_plugin_that_is_only_installed_does_nothing(packages):
    """Verdicts and their sharing are as without it."""
    install(packages)
    assert any(found.metadata["Name"] == "oddity" for found in distributions())
    assert filters_in_use() is BUILT_IN
    assert BUILT_IN.every == FILTERS
    assert BUILT_IN.shares_verdicts
    assert verdicts() == ([True, True], {})


@pytest.mark.parametrize("name", ["odd", "oddity:Odd"])
def test_a_named_plugin_judges_until_the_run_ends(packages, name):
    """Its verdict and its reason count behind those of the built-in filters, of an entry point or of a module."""
    install(packages)
    with using_filters(with_plugins([name])):
        assert not filters_in_use().shares_verdicts
        assert verdicts() == ([True, False], {"node(s) were even": 1})
    assert verdicts() == ([True, True], {})


@pytest.mark.parametrize(
    ("entry", "names", "words"),
    [
        ("oddity:Missing", ["odd"], "'odd' cannot be loaded"),
        ("oddity:Nothing", ["odd"], "'odd' is no filter: it must have name, refuse and failures"),
        ("oddity:Odd", ["even"], "there is no 'even'; installed: odd"),
        ("oddity:Odd", ["odd", "odd"], "'odd' is named twice"),
    ],
)
def test_what_cannot_be_used_is_named_with_the_setting(packages, entry, names, words):
    """Leaving a broken plug-in out would place pods where they must not go."""
    install(packages, entry)
    with pytest.raises(PluginNotUsable, match=r"^scheduler-plugins: ") as found:
        with_plugins(names)
    assert words in str(found.value)


def test_a_cloud_comes_with_its_package_and_version(packages):
    """All kinds of plug-ins are reported by name, package and version."""
    install(packages, version="2.1")
    plugin, _ = find_cloud("odd-cloud")
    assert plugin == Plugin("kubetide.clouds", "odd-cloud", "oddity", "2.1")
    assert str(plugin) == "odd-cloud (oddity 2.1)"


def test_records_say_which_plugins_decided_and_replay_which_is_missing(packages, tmp_path):
    """A record replays with its plug-in, also where none is named now; without it the error names it and its version."""
    install(packages)
    scenario = small(duration="2m")
    plain, with_odd = tmp_path / "plain", tmp_path / "odd"
    run_simulation(scenario, base=tmp_path, out=plain, seed=1, warn=lambda _: None)
    scenario = msgspec.structs.replace(scenario, flags={"scheduler-plugins": "odd"})
    said = []
    run_simulation(scenario, base=tmp_path, out=with_odd, seed=1, warn=said.append)
    assert any("scheduler plug-ins odd (oddity 1.0): asked after" in text for text in said)
    assert filters_in_use() is BUILT_IN

    assert replay(plain).differences == replay(with_odd).differences == ()
    assert replay(with_odd).notes == ()
    headers = []
    list(read_records(with_odd, "nodes", on_segment=headers.append))
    assert headers[0].plugins == (Plugin("kubetide.filters", "odd", "oddity", "1.0"),)

    install(packages, version="1.1")
    assert replay(with_odd).notes == (
        "horizontal-0001.jsonl was recorded with the plug-in odd (oddity 1.0); installed is odd (oddity 1.1)",
        "nodes-0001.jsonl was recorded with the plug-in odd (oddity 1.0); installed is odd (oddity 1.1)",
    )
    (packages / "oddity.dist-info" / "entry_points.txt").unlink()
    for again in (replay, lambda folder: explain_object(folder, "nodegroup", "x", namespace="", at=None)):
        with pytest.raises(RecordError) as found:
            again(with_odd)
        assert "was recorded with the plug-ins odd (oddity 1.0); scheduler-plugins: there is no 'odd'" in str(
            found.value
        )
    assert replay(plain).differences == ()


def test_each_segment_is_decided_again_with_its_own_plugins(packages):
    """A process may go on behind one with other plug-ins: each change is followed, and reported to the caller."""
    install(packages)
    plugin = Plugin("kubetide.filters", "odd", "oddity", "1.0")
    with recorded_plugins() as followed:
        assert not followed.take_up(Header(SCHEMA, "nodes", 1))
        assert followed.take_up(Header(SCHEMA, "nodes", 2, plugins=(plugin,)))
        assert filters_in_use().plugins == (plugin,)
        assert followed.take_up(Header(SCHEMA, "nodes", 3))
        assert filters_in_use().plugins == ()
    assert filters_in_use() is BUILT_IN
