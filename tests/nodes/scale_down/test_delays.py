"""Which delay holds the next scale-down, and what is reported, where only some deletions have begun."""

from __future__ import annotations

from kubetide.units.time import hours, seconds


def test_where_a_taint_failed_the_delay_after_a_failure_holds_alone(world):
    """As upstream: an empty node goes, the one to be drained could not be tainted and is tried soon again."""
    made = world(
        scale_down_unneeded_time=seconds(1),
        scale_down_delay_after_delete=hours(1),
        scale_down_delay_after_failure=seconds(30),
    ).add_group("a")
    made.add_node("a-0").add_node("a-1").add_node("a-2")
    made.add_pod("x", "a-1", cpu="100m").add_pod("full", "a-2", cpu="3")
    made.loop()
    made.failed_taints = ("a-1",)
    made.loop()
    assert made.status.result == "ScaleDownError"
    assert [one.node for one in made.status.scaled_down] == ["a-0"]
    made.failed_taints = ()
    made.settle(seconds(20))
    assert "a-0" not in made.nodes
    made.loop()
    assert made.status.result == "ScaleDownNodeDeleteStarted"
    made.loop()
    assert made.status.result == "ScaleDownInCooldown"
