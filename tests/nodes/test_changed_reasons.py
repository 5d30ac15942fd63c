"""What is recorded of reasons: those that the last tick has not given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubetide.explain.reasons import Reason
from kubetide.nodes.controller.changed_reasons import ChangedReasons

_STEPS = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from("xy"), st.integers(0, 2)).map(
        lambda one: Reason(one[0], one[1], {"pods": one[2]})
    ),
    max_size=5,
).map(tuple)


@given(ticks=st.lists(st.lists(_STEPS, min_size=1, max_size=3), max_size=6), repeats=st.booleans())
def test_only_reasons_that_the_last_tick_did_not_give_are_new(ticks, repeats):
    """Whether steps are as those of the last tick or not, in whatever step it gave them."""
    changed, before = ChangedReasons(), []
    for tick in [one for one in ticks for _ in range(1 + repeats)]:
        for number, step in enumerate(tick):
            found = changed.of(step, begins=number == 0)
            assert found == tuple(one for one in step if one not in before)
        before = [one for step in tick for one in step]
