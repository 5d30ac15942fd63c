"""The page of Cluster Autoscaler's command line is what the code does."""

from __future__ import annotations

import re

import pytest
from tests.docs.tables import CLUSTER_AUTOSCALER, rows, section, with_flags

from kubetide.runtime.configuration.config import ConfigError
from kubetide.runtime.upstream import Status, cluster_autoscaler_flags, understand
from kubetide.runtime.upstream.table import own_flags

PAGE = CLUSTER_AUTOSCALER.read_text(encoding="utf-8")


def test_the_table_is_not_stale():
    """The table is that of the code; else run `python -m tests.docs.tables`."""
    assert with_flags(PAGE) == PAGE
    assert len(rows(section(PAGE, "## Every flag"))) == len(cluster_autoscaler_flags())


def test_each_kind_of_answer_is_explained():
    """The text above the table explains what the table says of flags."""
    text = section(PAGE, "## Every flag").replace("\n", " ")
    for words in ("works", "accepted without effect, as upstream", "accepted", "not offered"):
        assert f"**{words}**" in text
    assert {flag.status for flag in cluster_autoscaler_flags().values()} <= set(Status) - {Status.OWN}


def test_the_example_of_errors_is_what_is_said():
    """The command of the page is refused in the words of the page."""
    reported = re.search(
        r"\$ kubetide cluster-autoscaler (.*)\nkubetide: ([^`]*)```",
        section(PAGE, "## What is wrong is said at once"),
    )
    with pytest.raises(ConfigError) as error:
        understand(reported[1].split())
    assert str(error.value) == reported[2].strip()


def test_own_settings_of_the_process_are_named():
    """The settings of `kubetide run` that the command takes are those of the page."""
    last = PAGE.rpartition("these of `kubetide run`:")[2]
    named = set(re.findall(r"`--([a-z-]+)`", last))
    assert named == {name for name, flag in own_flags().items() if flag.part == "run"}
