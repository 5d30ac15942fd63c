"""What tests of the dashboard share: the records of a small run."""

from __future__ import annotations

import pytest
from tests.simulate.worlds import small

from kubetide.simulate.run import run_simulation


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The records of a small run."""
    out = tmp_path_factory.mktemp("run")
    run_simulation(small(), base=out, out=out, seed=3, warn=lambda _: None)
    return out
