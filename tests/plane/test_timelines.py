"""The recorded timelines are those of a real control plane: some are played there again."""

from __future__ import annotations

import pytest
from tests.conftest import skip_without_plane
from tests.timelines.catalogue import TIMELINES
from tests.timelines.comparing import missing_facts, read
from tests.timelines.on_plane import plane_for, play_real

pytestmark = pytest.mark.slow

SHORT = ("deployment", "late-node", "evicting-taint")
PATIENCE_S = 5.0
"""How late a fact may be on a machine that does other work."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """A control plane for timelines in which no node falls silent; skips without its programs."""
    skip_without_plane()
    with plane_for(TIMELINES[SHORT[0]], tmp_path_factory.mktemp("stage")) as plane:
        yield plane


@pytest.mark.parametrize("name", SHORT)
def test_a_recording_is_what_the_control_plane_does(stage, name):
    """Each fact that all recorded runs saw comes again; a busy machine may be late."""
    timeline = TIMELINES[name]
    assert timeline.grace is None
    assert list(missing_facts(read(name), play_real(timeline, stage), PATIENCE_S)) == []
