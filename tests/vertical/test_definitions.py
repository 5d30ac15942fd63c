"""The definitions of VPA objects, as an API server takes them and holds objects against them."""

from __future__ import annotations

import pytest

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import VPAS
from kubetide.ports.errors import Invalid
from kubetide.runtime.install import put_definition
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import Instant
from kubetide.vertical.definitions import definitions

WHERE = {"namespace": "default"}


def vpa(**spec):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": VPAS.api_version,
        "kind": VPAS.kind,
        "metadata": {"name": "web"},
        "spec": {"targetRef": target, **spec},
    }


def play(story):
    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        for body in definitions():
            assert (await put_definition(cluster, body)).endswith(" created")
        return await story(cluster)

    return run_virtual(main, start=Instant(0))


def test_an_object_of_all_fields_is_accepted_whole():
    """Nothing that upstream's schema has is pruned."""
    policy = {
        "containerName": "*",
        "minAllowed": {"cpu": "100m"},
        "maxAllowed": {"cpu": 2, "memory": "1Gi"},
        "controlledResources": ["cpu"],
        "controlledValues": "RequestsOnly",
        "mode": "Auto",
        "oomBumpUpRatio": "1.5",
    }
    spec = {
        "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1, "evictAfterOOMSeconds": 60},
        "resourcePolicy": {"containerPolicies": [policy]},
        "recommenders": [{"name": "mine"}],
        "startupBoost": {"cpu": {"type": "Factor", "factor": 2, "durationSeconds": 10}},
    }

    async def story(cluster):
        await cluster.create(VPAS, vpa(**spec), **WHERE)
        return (await cluster.get(VPAS, "web", **WHERE)).spec

    found = play(story)
    assert found.update_policy.evict_after_oom_seconds == 60
    assert found.resource_policy.container_policies[0].max_allowed == {"cpu": 2, "memory": "1Gi"}
    assert found.startup_boost.cpu.factor == 2


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"updatePolicy": {"updateMode": "Sometimes"}}, "updateMode"),
        ({"targetRef": {"name": "web"}}, "kind"),
        ({"updatePolicy": {"evictAfterOOMSeconds": 0}}, "evictAfterOOMSeconds"),
        ({"resourcePolicy": {"containerPolicies": [{"minAllowed": {"cpu": "much"}}]}}, "minAllowed"),
    ],
)
def test_what_the_schema_forbids_is_refused(spec, field):
    """The API server refuses it by itself, without a webhook."""

    async def story(cluster):
        with pytest.raises(Invalid, match=field):
            await cluster.create(VPAS, vpa(**spec), **WHERE)

    play(story)


def test_definitions_that_are_there_are_updated():
    """Putting them once more changes nothing but what differs."""

    async def story(cluster):
        return [await put_definition(cluster, body) for body in definitions()]

    said = play(story)
    assert all(one.endswith(" configured") for one in said)


def test_a_target_is_applied_as_a_whole():
    """Two appliers cannot own parts of one reference."""
    [vpas] = [one for one in definitions() if one["spec"]["names"]["kind"] == VPAS.kind]
    for version in vpas["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert spec["properties"]["targetRef"]["x-kubernetes-map-type"] == "atomic"


def test_conditions_of_another_recommender_are_kept_whole():
    """Also a field that no loop here knows."""
    condition = {"type": "Tuned", "status": "True", "observedGeneration": 3}

    async def story(cluster):
        await cluster.create(VPAS, vpa(recommenders=[{"name": "theirs"}]), **WHERE)
        await cluster.patch(
            VPAS, "web", {"status": {"conditions": [condition]}}, subresource="status", **WHERE
        )
        return (await cluster.get(VPAS.untyped, "web", **WHERE))["status"]["conditions"]

    assert play(story) == [condition]
