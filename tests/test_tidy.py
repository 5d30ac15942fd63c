"""The house stays in order: small modules, few imports, commands that start quickly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "kubetide"
LONGEST = 400

# Longer on purpose, with the reason.
LONG_BY_NATURE: dict[str, str] = {"objects/kinds.py": "the registry of kinds, one table"}


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.py")), ids=lambda path: str(path.relative_to(SRC)))
def test_modules_are_short(path):
    """A module is about one thing: no more than 400 lines."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if str(path.relative_to(SRC)) in LONG_BY_NATURE:
        assert lines > LONGEST, "take it off the list"
    else:
        assert lines <= LONGEST


def loaded_by(module: str) -> set[str]:
    code = f"import {module}, sys, json; print(json.dumps(sorted({{n.split('.')[0] for n in sys.modules}})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


@pytest.mark.parametrize(
    "loop",
    [
        "kubetide.nodes.decide",
        "kubetide.horizontal.decide",
        "kubetide.vertical.recommender.decide",
        "kubetide.vertical.updater.decide",
        "kubetide.vertical.admission.decide",
    ],
)
def test_a_core_loads_only_what_it_decides_with(loop):
    """A loop's core needs msgspec (which takes typing_extensions where it is) and NumPy, nothing that talks."""
    third_party = loaded_by(loop) - set(sys.stdlib_module_names) - {"kubetide"}
    assert {name for name in third_party if not name.startswith("_")} <= {
        "msgspec",
        "numpy",
        "typing_extensions",
    }


def test_help_does_not_load_the_loops():
    """`kubetide --help` answers without NumPy."""
    assert "numpy" not in loaded_by("kubetide.cli.main")
