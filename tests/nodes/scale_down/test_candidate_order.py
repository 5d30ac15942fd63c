"""In which order removals are tried: upstream's sort leaves equal nodes elsewhere once there are more than twelve."""

from __future__ import annotations

from kubetide.scheduling.estimator.unstable_sort import descending_order
from kubetide.units.time import ZERO, minutes

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"

EMPTY = "0000001001111111001"
"""Which of nineteen nodes are empty; Go's sort puts 9 and 18 first (``tests/scheduling/test_unstable_sort``)."""


def nineteen(world, **settings):
    """Return a group of nodes, of which two at most are looked for in a tick."""
    made = world(max_scale_down_parallelism=1, **settings).add_group("a")
    for number, empty in enumerate(EMPTY):
        made.add_node(f"n-{number:02}")
        if empty == "0":
            made.add_pod(f"p-{number:02}", f"n-{number:02}", cpu="10m")
    return made


def test_of_many_equal_nodes_those_come_first_that_upstreams_sort_puts_first(world):
    """Of nine empty nodes among nineteen the first two by name would be 06 and 09."""
    made = nineteen(world)
    made.loop()
    assert made.status.unneeded == ("n-09", "n-18")


def ranked(waiting):
    """Return the first two of the nineteen, when this one waits for its pods to end by themselves."""
    scores = [2 * int(empty) + (number == waiting) for number, empty in enumerate(EMPTY)]
    return tuple(sorted(f"n-{number:02}" for number in descending_order(scores)[:2]))


def test_pods_that_must_end_by_themselves_count_though_their_controller_is_gone(world):
    """Upstream sorts without a look at controllers, so a node that will stay moves others."""
    made = nineteen(world)
    made.add_pod("p-00", "n-00", cpu="10m", of="gone", metadata={"annotations": {SAFE: "on-completion"}})
    del made.replica_sets["default", "gone"]
    made.loop()
    assert ranked(waiting=0) != ranked(waiting=None)
    assert made.status.unneeded == ranked(waiting=0)


def second(leaving):
    """Return which node Go's sort puts next to 18 in the second tick, with 09 in the list or without it."""
    numbers = [number for number in range(19) if leaving or number != 9]
    scores = [4 * int(EMPTY[number]) + (number in {9, 18}) for number in numbers]
    order = [numbers[at] for at in descending_order(scores)]
    return next(number for number in order if number not in {9, 18})


def test_nodes_on_their_way_out_are_sorted_along(world):
    """Upstream drops them after it has sorted, so that they move others."""
    made = nineteen(world, scale_down_unneeded_time=ZERO, node_delete_delay_after_taint=minutes(5))
    made.loop()
    assert made.tainted("ToBeDeletedByClusterAutoscaler") == ["n-09"]
    made.loop()
    assert second(leaving=True) != second(leaving=False)
    assert set(made.status.unneeded) == {"n-18", f"n-{second(leaving=True):02}"}
