"""ScaledObjects when servers, writes, clocks and deletions are not as they should be."""

from __future__ import annotations

import pytest
from tests.elastic.test_keda import NOW, PROMETHEUS, START, answer, source

from kubetide.elastic.keda.decide import absorb, decide
from kubetide.elastic.keda.state import Answer, Delta, State
from kubetide.units.time import Instant, after, hours, minutes, seconds


@pytest.mark.parametrize("threshold", ["1e308", "1e17"])
def test_a_threshold_that_is_no_quantity_is_refused(threshold):
    """It would end the pass of all objects."""
    given = source({**PROMETHEUS, "metadata": {**PROMETHEUS["metadata"], "threshold": threshold}})
    assert "is no number" in given.refused[0]


def test_objects_are_queried_again_after_the_clock_was_ahead():
    """A year ahead for one look: the object is due at once by the true time, and rests no year after its last work."""
    state, key = State(), ("shop", "worker")
    ahead = Instant(START + hours(24 * 365))
    state.apply(Delta(sources=(source(),), answers=(Answer(key, True, "", (), 3, "1"),)))
    absorb(state, decide(state, ahead), [], ahead)
    assert state.due(NOW) == [key]
    state.apply(Delta(answers=(answer(3),)))
    absorb(state, decide(state, NOW), [], NOW)
    assert state.due(Instant(NOW + seconds(10))) == []
    later = after(NOW, minutes(6))
    state.apply(Delta(answers=(answer(3),)))
    assert [one.replicas for one in decide(state, later).writes] == [0]
