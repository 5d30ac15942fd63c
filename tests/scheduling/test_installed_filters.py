"""A filter plugin of another package counts as soon as that is installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PLUGIN = """
class Odd:
    name = "Odd"

    def passes(self, pod, rows):
        import numpy as np

        return np.array([not name.endswith("2") for name in rows.names])

    def refuse(self, pod, rows, row):
        from kubetide.scheduling import Refusal

        return None if self.passes(pod, rows)[row] else Refusal(plugin=self.name, reasons=("node(s) were even",))

    def failures(self, pod, rows):
        return [("node(s) were even", ~self.passes(pod, rows))]


class Nothing:
    name = "Nothing"
"""
PROGRAM = """
from tests.scheduling.plain import make_node, make_pod
from kubetide.scheduling import Snapshot, classify

snapshot = Snapshot()
for name in ("n1", "n2"):
    snapshot.set_node(make_node(name))
pod = classify(make_pod())
print(snapshot.feasible(pod).tolist(), snapshot.refusals(pod))
"""


def run(folder, entry):
    (folder / "oddity.py").write_text(PLUGIN)
    info = folder / "oddity-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: oddity\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kubetide.filters]\nodd = {entry}\n")
    path = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_an_installed_plugin_judges(tmp_path):
    """Its verdict and its reason count beside those of the built-in plugins."""
    done = run(tmp_path, "oddity:Odd")
    assert done.stdout == "[True, False] {'node(s) were even': 1}\n", done.stderr


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("oddity:Missing", "cannot be loaded"),
        ("oddity:Nothing", "is no filter: it must have name, refuse and failures"),
    ],
)
def test_what_is_no_plugin_is_named(tmp_path, entry, words):
    """A broken plugin is an error with its name: leaving it out would place pods where they must not go."""
    done = run(tmp_path, entry)
    assert done.returncode
    assert f"filter plugin 'odd' ({entry})" in done.stderr
    assert words in done.stderr
