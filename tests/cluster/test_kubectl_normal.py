"""Parts that differ from run to run are left out of kubectl's outputs, whatever was drawn."""

from __future__ import annotations

import pytest
from tests.cluster.kubectl.normal import normal


@pytest.mark.parametrize("number", ["1013203310", "2245678942", "24567894"])
def test_folders_of_a_diff_have_no_number(number):
    """Some of the numbers have only digits that hashes of pod templates have as well."""
    assert (
        normal(f"--- /tmp/LIVE-{number}/v1.Pod.default.web", {}, "/nowhere")
        == "--- /tmp/LIVE/v1.Pod.default.web"
    )
