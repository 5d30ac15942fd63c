"""How long consolidation leaves nodes alone: longer after each move that failed."""

from __future__ import annotations

from tests.nodes.consolidation.fleet import Fleet, priced
from tests.nodes.frozen import pod

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.scale_down.deletion.deletions import note_failure
from kubetide.nodes.state import Gone
from kubetide.units.time import after, between, format_rfc3339, hours, minutes

LARGE, SMALL = priced("large", 16, 0.8), priced("small", 4, 0.2)


def two_nodes(kind=Fleet):
    """The pod of the first node fits on the second, which a pod without a controller keeps."""
    kept = pod("kept", cpu="900m", node="small-1", kind="")
    return kind([SMALL], {"small": [[2500], []]}, more=[kept], scale_down_utilization_threshold=0.1)


def begun(made, code):
    return [one.subject for one in made.reasons if one.code == code]


def test_after_each_move_that_is_given_up_the_next_comes_later():
    """Whenever a move is found its place is taken: the pauses are half an hour, an hour, two, four, and eight from then on."""
    made = two_nodes()
    pauses = []
    for _ in range(6):
        since = made.now
        known = len(made.chosen)
        while len(made.chosen) == known:
            made.run(minutes(1))
        pauses.append(between(since, made.now) // minutes(1))
        made.apply(pods=(pod("late", cpu="1500m", node="small-1"),))
        gave_up = len(begun(made, "ConsolidationGivenUp"))
        while len(begun(made, "ConsolidationGivenUp")) == gave_up:
            made.run(minutes(1))
        made.apply(gone=Gone(pods=(("default", "late"),)))
    assert pauses == [1, 30, 60, 120, 240, 480]


class Undrainable(Fleet):
    """No drain comes to its end."""

    def _taint(self, action):
        if action.key == TO_BE_DELETED:
            self.state.memory.scale_down.deletions.pop(action.node)
            note_failure(self.state, action.node, "NodeDeleteErrorFailedToEvictPods", "no", self.now)


def test_a_node_that_cannot_be_drained_is_tried_seldom():
    """Half a day of drains that fail are five, as the pause grows to eight hours."""
    made = two_nodes(Undrainable).run(hours(14), step=minutes(2))
    assert len(begun(made, "ConsolidationBegun")) == 5


def test_a_node_that_is_left_alone_says_until_when():
    """And why its move was given up; afterwards it is tried again."""
    made = two_nodes()
    made.run(minutes(1))
    made.apply(pods=(pod("late", cpu="1500m", node="small-1"),))
    while not begun(made, "ConsolidationGivenUp"):
        made.run(minutes(1))
    made.apply(gone=Gone(pods=(("default", "late"),)))
    until = format_rfc3339(after(made.now, minutes(30)))
    made.run(minutes(28))
    reported = explain_node(made.state, "small-0", made.now).consolidated
    assert reported.startswith(
        f"it is left alone until {until}, as a move was given up: pod default/small-0-p0 fits on"
    )
    assert len(made.chosen) == 1
    assert len(made.run(minutes(4)).chosen) == 2
