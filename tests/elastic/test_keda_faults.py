"""ScaledObjects when servers, writes, clocks and deletions are not as they should be."""

from __future__ import annotations

import pytest
from tests.elastic.test_keda import PROMETHEUS, source


@pytest.mark.parametrize("threshold", ["1e308", "1e17"])
def test_a_threshold_that_is_no_quantity_is_refused(threshold):
    """It would end the pass of all objects."""
    given = source({**PROMETHEUS, "metadata": {**PROMETHEUS["metadata"], "threshold": threshold}})
    assert "is no number" in given.refused[0]
