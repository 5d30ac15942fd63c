"""The pages of the reference, and the names that leading pages use, are what the code has."""

from __future__ import annotations

import re

import pytest
from tests.docs.reference import reference_pages
from tests.docs.site import led_pages
from tests.docs.tables import DOCS, SRC

from kubetide.loop import flag_names
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.runtime.upstream import cluster_autoscaler_flags

PREFIXES = re.compile(
    r'"((?:[a-z-]+\.)?cluster-autoscaler\.kubernetes\.io/[a-z-]*|(?:vertical\.kubetide\.io|kubetide\.dev)/[a-z-]+'
    r'|vpa(?:Updates|ObservedContainers|InPlaceUpdated|CpuStartupBoost))"'
)
INNER = {"cluster-autoscaler.kubernetes.io/"}
"""A prefix that is cut off, not a name."""


OTHERS = {
    "--advise",
    "--show-labels",
    "--show-managed-fields",
    "--username",
    "--password",
    "--prometheus-address",
}
"""Flags of other programs, and of `kubetide cluster-autoscaler`, which reads its arguments by rules of its own."""


@pytest.mark.parametrize("name", list(reference_pages()))
def test_pages_that_are_made_are_not_stale(name):
    """The pages are those of the code; else run `python -m tests.docs.tables`."""
    assert (DOCS / name).read_text(encoding="utf-8") == reference_pages()[name]


def test_every_annotation_is_on_its_page():
    """Each name in the code is on the page, and each name on the page is in the code."""
    page = (DOCS / "reference" / "annotations.md").read_text(encoding="utf-8")
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SRC.rglob("*.py")))
    spelled = set(PREFIXES.findall(code)) - INNER
    reported = {
        cell
        for row in re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
        for cell in re.findall(r"`([^`]+)`", row)
    }
    assert spelled - {name.removesuffix("…") for name in reported} == set()
    assert {name for name in reported if f'"{name.removesuffix("…")}"' not in code} == set()


@pytest.mark.parametrize("name", led_pages())
def test_flags_that_a_leading_page_names_exist(name):
    """In running text too: of the loops, of the process, of upstream's command line, or of a command."""
    known = {
        *flag_names(),
        *cluster_autoscaler_flags(),
        *(f.replace("_", "-") for f in RunSettings.__struct_fields__),
    }
    commands = reference_pages()["reference/commands.md"]
    page = (DOCS / name).read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", re.sub(r"```.*?```", "", page, flags=re.DOTALL)))
    unknown = {flag for flag in named - OTHERS if flag.removeprefix("--") not in known}
    assert {flag for flag in unknown if f"{flag} " not in commands and f"{flag}`" not in commands} == set()


def test_reasons_that_protect_a_node_are_those_of_the_loop():
    """The question's table names codes that the loop says."""
    page = (DOCS / "questions" / "node-still-here.md").read_text(encoding="utf-8")
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted((SRC / "nodes").rglob("*.py")))
    named = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert named
    assert [one for one in named if f'"{one}"' not in code] == []


def test_messages_of_symptoms_are_those_of_the_code():
    """The code of a symptom is the text of a message, up to its placeholders."""
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SRC.rglob("*.py")))
    said = [
        text
        for row in re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
        for text in re.findall(r"`([^`]+)`", row)
    ]
    assert len(said) >= 5
    assert [
        part for text in said for part in text.split("…") if part.strip() and part.strip() not in code
    ] == []
