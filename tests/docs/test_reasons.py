"""The page of reasons is what the loops can say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.docs.tables import REASONS, VOCABULARIES, rows, section, with_tables

from kubetide.explain.reasons import Reason

SRC = Path(__file__).parents[2] / "src" / "kubetide"
HEADINGS = {
    "horizontal": "## Pods",
    "vertical/recommender": "## Recommendations",
    "vertical/updater": "## Updates of pods by a VPA",
    "nodes": "## Nodes",
    "simulate/playground": "## A playground",
}


def test_the_page_is_not_stale():
    """The tables are those of the code; else run `python -m tests.docs.tables`."""
    page = REASONS.read_text(encoding="utf-8")
    assert page == with_tables(page)


@pytest.mark.parametrize("loop", list(VOCABULARIES))
def test_all_codes_are_there_in_their_order(loop):
    """The page lists every code of a loop, in the order of the vocabulary, and marks its actions."""
    vocabulary = VOCABULARIES[loop]
    table = rows(section(REASONS.read_text(encoding="utf-8"), HEADINGS[loop]))
    assert [row[0].strip("`") for row in table] == list(vocabulary.codes)
    assert [row[1] == "yes" for row in table] == [
        vocabulary.is_action(Reason(code)) for code in vocabulary.codes
    ]
    assert all(row[2] for row in table)


def texts_in_functions(folder):
    """Return all texts in the functions of a loop; its vocabulary is outside of them."""
    functions = [
        node
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    constants = [
        node for function in functions for node in ast.walk(function) if isinstance(node, ast.Constant)
    ]
    return {node.value for node in constants if isinstance(node.value, str)}


@pytest.mark.parametrize("loop", list(VOCABULARIES))
def test_no_code_is_listed_that_nothing_says(loop):
    """Every code of the vocabulary is used by its loop."""
    used = texts_in_functions(SRC / loop)
    assert [code for code in VOCABULARIES[loop].codes if code not in used] == []
