"""CapacityQuotas: limits on nodes of certain labels, beside those of the whole cluster."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import group, pod, pods, template
from tests.nodes.requests import conditions_of, quota, world

from kubetide.nodes.capacity.definitions import definitions
from kubetide.nodes.capacity.quotas import InvalidQuota, quota_of
from kubetide.units.time import seconds

GPU = {"matchLabels": {"pool": "gpu"}}


def status(held, name):
    return next(one for one in held.state.capacity.quotas if one.metadata.name == name).status


def two_groups():
    return [group("g", nodes=("n1",)), group("x", made=template(labels={"pool": "gpu"}))]


def test_a_quota_skips_the_group_in_upstream_s_words():
    """A group whose next node would pass a quota is skipped, and the pod's event names the quota."""
    held = world(quotas=[quota("small", {"nodes": "1"})], pods=pods("p", 3, cpu="3"))
    assert held.increases() == {}
    assert held.messages("NotTriggerScaleUp")[0] == (
        'pod didn\'t trigger scale-up: 1 exceeded quota: "CapacityQuota/small", resources: nodes'
    )


def test_a_quota_cuts_an_increase():
    """No more of the needed nodes are bought than the quota leaves, by every resource of it."""
    held = world(quotas=[quota("cores", {"cpu": "12", "memory": "1Ti"})], pods=pods("p", 9, cpu="3"))
    assert held.increases() == {"g": 2}
    held = world(quotas=[quota("memory", {"memory": "40Gi"})], pods=pods("p", 9, cpu="3"))
    assert held.increases() == {"g": 1}


@pytest.mark.parametrize("bound", ["flag", "quota"])
def test_similar_groups_stay_within_the_limits_together(bound):
    """A similar group may have larger nodes than the chosen one: what it may not have is not bought."""
    groups = [group("a", made=template(memory="100Gi")), group("b", made=template(memory="101Gi"))]
    flags = {"memory_total": "0:400"} if bound == "flag" else {}
    quotas = [quota("memory", {"memory": "400Gi"})] if bound == "quota" else []
    held = world(
        quotas=quotas,
        groups=groups,
        nodes=(),
        pods=pods("p", 4, cpu="3"),
        balance_similar_node_groups=True,
        **flags,
    )
    assert held.increases() == {"a": 2, "b": 1}


def test_groups_come_up_to_their_minimum_within_the_quota():
    """What one group takes of a quota is not there for the next one, nor what was bought for pods in the same tick."""
    groups = [group("a", minimum=2), group("b", minimum=2), group("g", made=template(cpu="8"))]
    held = world(
        quotas=[quota("small", {"nodes": "4"})],
        groups=groups,
        nodes=(),
        pods=[pod("p", cpu="7")],
        enforce_node_group_min_size=True,
    )
    held.tick()
    assert [one.target_size for one in held.groups.values()] == [2, 1, 1]


def test_a_quota_holds_for_the_nodes_that_it_selects():
    """A group of other labels is not bound by it."""
    bound = [quota("gpus", {"nodes": "0"}, GPU)]
    held = world(quotas=bound, groups=two_groups(), pods=pods("p", 3, cpu="3"))
    assert held.increases() == {"g": 2}
    assert held.state.tick is None or held.state.tick.skipped == {
        "x": ('exceeded quota: "CapacityQuota/gpus", resources: nodes',)
    }


def test_the_cheapest_purchase_obeys_quotas():
    """The expander least-cost plans within the quotas as it does within the limits of the cluster."""
    groups = [group("g", nodes=("n1",), price_per_hour=1.0)]
    held = world(
        quotas=[quota("small", {"nodes": "3"})],
        groups=groups,
        pods=pods("p", 9, cpu="3"),
        expander="least-cost",
    )
    assert held.increases() == {"g": 2}


def test_the_status_says_what_is_used():
    """Cores, memory and nodes of what the selector matches; conditions as upstream's, written when something changes."""
    held = world(quotas=[quota("all", {"cpu": "100", "memory": "1Ti", "nodes": "10"})])
    held.tick()
    found = status(held, "all")
    assert found.used.resources == {"cpu": "4", "memory": "16Gi", "nodes": "1"}
    assert conditions_of(found) == {
        "cluster-autoscaler.kubernetes.io/valid": ("True", "ValidationSucceeded", "CapacityQuota is valid"),
        "Reconciled": ("True", "ReconciliationSucceeded", "CapacityQuota successfully reconciled"),
    }
    assert found.observed_generation == 2
    held.tick(at=seconds(60))
    assert status(held, "all") == found


@pytest.mark.parametrize(
    ("limits", "selector", "fault"),
    [
        ({"cpu": "500m"}, None, "give a whole number"),
        ({"cpu": "-1"}, None, "give a whole number"),
        ({"cpu": "many"}, None, "spec.limits.resources[cpu]"),
        ({}, None, "it limits nothing"),
        ({"cpu": "1"}, {"matchExpressions": [{"key": "a", "operator": "Near"}]}, "spec.selector"),
    ],
)
def test_a_quota_that_cannot_be_counted_limits_nothing(limits, selector, fault):
    """It says what is wrong with it, and the others hold."""
    with pytest.raises(InvalidQuota, match=r"spec\."):
        quota_of(quota("odd", limits, selector))
    held = world(
        quotas=[quota("odd", limits, selector), quota("small", {"nodes": "2"})], pods=pods("p", 9, cpu="3")
    )
    assert held.increases() == {"g": 1}
    found = conditions_of(status(held, "odd"))
    assert found["Reconciled"] == ("False", "ReconciliationFailed", "Validation failed")
    valid = found["cluster-autoscaler.kubernetes.io/valid"]
    assert valid[:2] == ("False", "ValidationFailed")
    assert fault in valid[2]


def test_the_definition_bounds_the_names_of_resources():
    """As upstream, an API server takes no resource name of more than 63 characters, and only whole amounts."""
    defined = next(one for one in definitions() if one["spec"]["names"]["kind"] == "CapacityQuota")
    for version in defined["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        limits = spec["properties"]["limits"]["properties"]["resources"]
        assert [one["message"] for one in limits["x-kubernetes-validations"]] == [
            "Resource names must be 63 characters or less.",
            "All resource quantities must be non-negative integers.",
        ]
