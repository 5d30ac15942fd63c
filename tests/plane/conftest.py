"""What the tests of the whole loop share."""

from __future__ import annotations

import pytest
from tests.conftest import skip_without_plane
from tests.plane.towns import audited_plane


@pytest.fixture(scope="session")
def audited(tmp_path_factory):
    """A control plane that writes down every request; skips without its programs."""
    skip_without_plane()
    with audited_plane(tmp_path_factory.mktemp("audited")) as plane:
        yield plane
