"""Groups are similar by the free amounts of their templates."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import pod, template
from tests.nodes.live import play

from kubetide.embedded.cloud import GroupSpec
from kubetide.nodes.scale_up.increase.balancing import are_similar
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.template import Template
from kubetide.scheduling import ClusterFacts, fresh_node
from kubetide.units.time import minutes

FUSE = "example.com/fuse"


def made(*requests):
    """Return a template of 40 pods with a fast device for many, and one pod for each of these requests."""
    offers = {"cpu": "4", "memory": "16Gi", "pods": "40", FUSE: "100"}
    node = template(status={"allocatable": offers, "capacity": offers}).node
    pods = tuple(
        pod(f"d{number}", spec={"containers": [{"name": "c", "resources": {"requests": one}}]})
        for number, one in enumerate(requests)
    )
    return Template(node, pods, "cloud", "made", fresh_node(node, pods, ClusterFacts()))


@pytest.mark.parametrize(
    ("here", "there", "similar"),
    [
        ([], [{}] * 8, True),
        ([{"cpu": "100m"}], [{"cpu": "200m"}], True),
        ([{"cpu": "100m"}], [{"cpu": "400m"}], False),
        ([{FUSE: "1"}], [{FUSE: "5"}], True),
        ([{FUSE: "1"}], [{FUSE: "9"}], False),
        ([{FUSE: "1"}], [{}], False),
    ],
)
def test_free_amounts_are_compared_as_upstream_sums_them(here, there, similar):
    """Pods are not counted; a device is compared only if pods request it, and then on both sides."""
    assert are_similar(made(*here), made(*there), Settings()) is similar
    assert are_similar(made(*there), made(*here), Settings()) is similar


def test_an_empty_group_of_the_embedded_cloud_is_similar_to_one_with_nodes():
    """Nodes have the deprecated labels that templates get: an increase is shared though only one group has a node."""
    zones = {"a": "z1", "b": "z2"}
    groups = tuple(
        GroupSpec(name=name, instance_type="m5.large", zones=(zone,), min_size=int(name == "a"), max_size=5)
        for name, zone in zones.items()
    )
    sizes = []

    async def story(world):
        await world.after(minutes(5))
        await world.deploy(replicas=4, cpu="1500m")
        await world.after(minutes(5))
        sizes.extend(sum(name.startswith(f"{group}-") for name in world.nodes) for group in zones)

    play(story, groups, balance_similar_node_groups=True)
    assert sizes == [2, 2]
