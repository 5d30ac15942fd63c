"""The map is true: what it names is there, and what is there is named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.docs.tables import DOCS, rows, section, with_modules

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "kubetide"
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
PACKAGES = section(PAGE, "## Packages, from the top")
WRITTEN = PAGE.split("## Every module of the cores")[0] + PAGE.split("<!-- end -->")[-1]
PATHS = sorted(set(re.findall(r"`([\w./]+(?:/|\.py|\.md|\.toml))`", WRITTEN)))


@pytest.mark.parametrize("path", PATHS)
def test_what_the_map_names_is_there(path):
    """Every path on the page exists: under the package, at the top of the repository, or in each loop."""
    if path.startswith("controller/") or ("/" not in path and path.endswith(".py")):
        assert all((SRC / loop / path).exists() for loop in ("horizontal", "nodes")), "every loop has it"
    else:
        assert (SRC / path).exists() or (ROOT / path).exists()


def test_every_package_is_named():
    """The table lists each package once, and nothing else."""
    named = [row[1].strip("`/") for row in rows(PACKAGES)]
    there = {str(path.parent.relative_to(SRC)) for path in SRC.rglob("__init__.py")} - {"."}
    assert sorted(named) == sorted(there)


def test_every_module_of_the_cores_is_named():
    """The list of modules is the one that ``python -m tests.docs.tables`` writes."""
    assert with_modules(PAGE) == PAGE


def test_layers_are_those_of_the_import_contract():
    """The layers of the table are those that import-linter checks, in the same order."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(one for one in pyproject["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    checked = [
        {part.strip().removeprefix("kubetide.") for part in layer.split("|")} for layer in contract["layers"]
    ]
    page: list[set[str]] = []
    for number, package, _ in rows(PACKAGES):
        if number == "beside":
            break
        if number:
            assert int(number) == len(page) + 1
            page.append(set())
        page[-1].add(package.strip("`").split("/")[0])
    assert page == checked


def test_links_between_pages_lead_somewhere():
    """Every relative link in the pages of documentation leads to a file that is there."""
    for page in sorted(DOCS.rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
