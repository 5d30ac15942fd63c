"""A node selector with a slip: the label that a group has is offered before one for the nodes."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import World, group, pod, template

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.waiting.misspelt_labels import is_slip

FAST = {"disktype": "fast-ssd", "topology.kubernetes.io/zone": "zone-a", "kubernetes.io/arch": "amd64"}
ZONE = "topology.kubernetes.io/zone"


def way_out(selector, *, others=()):
    """Return what would make the group with those labels, or another, take a pod with the selector."""
    groups = [
        group("fast", made=template(labels=FAST)),
        *(group(f"g{at}", made=template(labels=labels)) for at, labels in enumerate(others)),
    ]
    world = World(pods=[pod("a", spec={"nodeSelector": selector})], groups=groups)
    assert world.increases() == {}
    found = explain_pod(world.state, ("default", "a"), world.now).way_out
    assert found is not None
    assert found.verified or "add a group" in found.text
    return found.text


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        (
            {"disktype": "fats-ssd"},
            "write disktype=fast-ssd in place of disktype=fats-ssd in the pod's node selector",
        ),
        (
            {"disktypes": "fast-ssd"},
            "write disktype=fast-ssd in place of disktypes=fast-ssd in the pod's node selector",
        ),
        ({"topology.kubernetes.io/zon": "zone-a"}, f"write {ZONE}=zone-a in place of topology.kubernetes.io/zon=zone-a"),
        ({"diskType": "fast-ssd"}, "write disktype=fast-ssd in place of diskType=fast-ssd"),
    ],
)  # fmt: skip
def test_the_label_that_is_meant_is_offered(selector, said):
    """A slip in the value or in the key is put right in the pod, and the group then takes it."""
    assert way_out(selector).startswith(said)


def test_a_label_that_no_group_has_nearly_is_to_be_added():
    """What differs more, zones and architectures are no slips; nor is a label that another group has."""
    assert way_out({"disktype": "slow"}) == "add label disktype=slow to the nodes of group fast"
    assert way_out({ZONE: "zone-b"}).startswith("add a group like fast in zone zone-b")
    assert way_out({"kubernetes.io/arch": "arm64"}).startswith(
        "add a group like fast with kubernetes.io/arch=arm64"
    )
    other, asked = {"disktype": "fasts-ssd", "for": "x"}, {"disktype": "fasts-ssd", "for": "y"}
    assert "in place of disktype" not in way_out(asked, others=[other])


@pytest.mark.parametrize(
    ("written", "meant"),
    [("sdd-fast", "sdd-fats"), ("batchs", "batch"), ("prodution", "production"), ("high_mem", "high-mem"), ("GPU", "gpu")],
)  # fmt: skip
def test_a_slip(written, meant):
    """A letter too many, too few or wrong, two swapped, another separator, or another case."""
    assert is_slip(written, meant)
    assert is_slip(meant, written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("gpu", "cpu"), ("gen1", "gen2"), ("team-a", "team-b"), ("xlarge", "large"), ("hdd", "ssd"), ("same", "same"), ("pool-1", "pool-12"), ("a", "b"), ("", "x")],
)  # fmt: skip
def test_another_name_is_no_slip(written, meant):
    """Digits, first letters and short words tell names apart."""
    assert not is_slip(written, meant)
    assert not is_slip(meant, written)
