"""The house stays in order: small modules, few imports, commands that start quickly."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "kubetide"
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


ABOUT_ITSELF = (
    "Gives",
    "Makes",
    "Puts",
    "Reads",
    "Returns",
    "Runs",
    "Sends",
    "Starts",
    "Takes",
    "Tells",
    "Waits",
    "Writes",
)
"""How a docstring begins that describes a function and does not say what it does for its caller."""


def docstrings(module: ast.Module):
    functions = (one for one in ast.walk(module) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
    for one in functions:
        # A fixture is a thing, a test a fact: they are not called for what they do.
        is_fixture = any("fixture" in ast.unparse(decorator) for decorator in one.decorator_list)
        if not is_fixture and not one.name.startswith("test_"):
            yield one.lineno, ast.get_docstring(one) or ""


@pytest.mark.parametrize("folder", ["src", "tests", "bench", "tools"])
def test_docstrings_say_what_to_expect(folder):
    """They begin with "Return the nodes that …", not with "Gives …"."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if text.startswith(ABOUT_ITSELF)
    ]
    assert not found, found


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
        "sitecustomize",  # of the machine's Python
    }


def test_help_does_not_load_the_loops():
    """`kubetide --help` answers without NumPy."""
    assert "numpy" not in loaded_by("kubetide.cli.main")
