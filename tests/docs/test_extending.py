"""The examples of docs/extending.md work unchanged: put into a copy of the package, and used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.docs.tables import DOCS

from kubetide.forecast.backtest import backtest
from kubetide.forecast.forecaster import History
from kubetide.units.time import Instant, minutes

ROOT = Path(__file__).parents[2]
PAGE = (DOCS / "extending.md").read_text(encoding="utf-8")
NEW_FILES = re.findall(r"```python\n# new file: (\S+)\n(.*?)```", PAGE, flags=re.DOTALL)
CHANGES = re.findall(r"```diff\n# (\S+)\n(.*?)```", PAGE, flags=re.DOTALL)
ELSEWHERE = {
    "siesta": "tests/docs/test_own_rules.py",
    "evens": "tests/docs/test_own_rules.py",
    "spool": "tests/runtime/test_metric_sources.py",
    "yesterday": "tests/docs/test_extending.py",
    "floors": "tests/docs/test_own_loop.py",
}
"""The test of each package of the page."""


def changed(text, diff):
    """Return a text with a diff applied; a context or deleted line must be in it exactly once."""
    lines, at = text.splitlines(), 0
    for line in diff.splitlines():
        mark, content = line[:1], line[1:]
        if mark == "+":
            lines.insert(at, content)
            at += 1
            continue
        assert lines.count(content) == 1, f"{content!r} occurs {lines.count(content)} times"
        at = lines.index(content)
        if mark == "-":
            del lines[at]
        else:
            at += 1
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the package with all examples in it."""
    root = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    for path, text in NEW_FILES:
        assert not (root / path).exists(), f"{path} is not a new file"
        (root / path).write_text(text, encoding="utf-8")
    for path, diff in CHANGES:
        file = root / path
        file.write_text(changed(file.read_text(encoding="utf-8"), diff), encoding="utf-8")
    return root


def test_all_examples_are_found():
    """Every fenced block of Python or diff is an example that is tried; those of packages of one's own have tests of their own."""
    assert re.findall(r"^```python\n# package of its own: (\w+)\.py$", PAGE, flags=re.MULTILINE) == [
        *ELSEWHERE
    ]
    assert len(NEW_FILES) + len(CHANGES) + len(ELSEWHERE) == len(
        re.findall(r"^```(?:python|diff)$", PAGE, flags=re.MULTILINE)
    )
    assert len(CHANGES) == len(
        re.findall(r"^## (?:An?) (?!adapter|loop|forecaster|option)", PAGE, flags=re.MULTILINE)
    )


def test_the_forecaster_is_one():
    """The forecaster of the page is loaded as any other, and is better than the level on a wave that repeats."""
    [text] = re.findall(r"```python\n(# package of its own: yesterday.py\n.*?)```", PAGE, flags=re.DOTALL)
    module = ModuleType("yesterday")
    exec(compile(text, "yesterday.py", "exec"), module.__dict__)
    steps = np.arange(4 * 1440)
    loads = (20 + 15 * np.sin(2 * np.pi * steps / 240)).astype(np.float32)[:, None]
    history = History(loads, minutes(1), Instant(len(steps) * minutes(1)))
    assert backtest(module.Yesterday(), history, 70, 0.9).is_better.all()


def test_paths_exist():
    """Every path that the page names exists, except the new files."""
    new = {path for path, _ in NEW_FILES}
    for path in dict.fromkeys(re.findall(r"\b(?:src|tests)/[\w/.]*\w", PAGE)):
        assert path in new or (ROOT / path).exists(), path


def test_the_examples_work(extended):
    """With the examples put in, each of them decides what the page says it decides."""
    env = {
        **os.environ,
        "PYTHONPATH": f"{extended / 'src'}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    script = Path(__file__).with_name("extended.py")
    run = subprocess.run(
        [sys.executable, "-W", "error", str(script)], env=env, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["expander", "filter", "drain", "demand", "type", "metric"]
