"""Which of the lost nodes are evicted."""

from __future__ import annotations

import msgspec
import pytest

from kubetide.embedded.kubelet.disruption_modes import evicting
from kubetide.objects.node import Node
from kubetide.testing import builders

ZONE = "topology.kubernetes.io/zone"


def nodes(zone, ready, unready=0):
    return [
        made(f"{zone}-{'up' if up else 'down'}-{number}", zone, ready=up)
        for up, count in ((True, ready), (False, unready))
        for number in range(count)
    ]


def made(name, zone, *, ready):
    return msgspec.convert(builders.node(name, ready=ready, labels={ZONE: zone}), Node)


def verdict(found):
    """Return the one verdict for all lost nodes."""
    (only,) = set(found.values())
    return only


@pytest.mark.parametrize(
    ("ready", "lost", "evicts"),
    [
        (1, 1, True),
        (1, 2, True),  # two are few
        (1, 3, None),
        (3, 3, True),  # 50 %
        (22, 28, None),  # 56 % of 50
        (22, 29, True),  # more than 50 nodes
        (0, 1, False),
        (0, 9, False),
    ],
)
def test_a_zone(ready, lost, evicts):
    """All but a few lost nodes: nobody is evicted; a large zone goes on; without any Ready node all evictions stop."""
    all_nodes = nodes("a", ready, lost)
    names = {node.metadata.name for node in all_nodes if "down" in node.metadata.name}
    assert verdict(evicting(all_nodes, names)) is evicts


def test_zones_are_apart():
    """A zone that is lost as a whole is evicted while another has Ready nodes; a node that joins counts as not Ready."""
    first = nodes("a", 0, 4)
    names = {node.metadata.name for node in first}
    assert verdict(evicting([*first, *nodes("b", 1)], names)) is True
    assert verdict(evicting([*first, *nodes("b", 0, 1)], names)) is False
    joining = nodes("c", 2, 3)
    assert evicting(joining, {"c-down-0"}) == {"c-down-0": None}


def test_a_lost_node_is_not_ready_whatever_the_cache_says():
    """Its condition may be older than its loss."""
    (node,) = nodes("a", 1)
    assert evicting([node], {node.metadata.name}) == {node.metadata.name: False}
