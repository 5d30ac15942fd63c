"""An ElasticWorkload at a real control plane: its sections act, its rules refuse, and conversion loses nothing."""

from __future__ import annotations

import json

import pytest
from tests.plane.defined import Defined
from tests.plane.towns import ROOMY, kubetide_run, town

from kubetide.cli.convert import objects_of
from kubetide.elastic.convert.backward import from_elastic
from kubetide.elastic.convert.forward import to_elastic
from kubetide.elastic.definitions import definitions
from kubetide.objects.elastic import is_accepted
from kubetide.objects.kinds import (
    DEPLOYMENTS,
    ELASTIC_WORKLOADS,
    EVENTS,
    HPAS,
    VPAS,
)
from kubetide.ports.errors import Invalid
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.vertical.definitions import definitions as vpa_definitions

pytestmark = pytest.mark.slow

FLAGS = (
    "--act",
    "--controllers=elastic,schedules,horizontal,recommender",
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--schedules-period=1s",
    "--recommender-interval=2s",
)
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
ALWAYS = {"name": "always", "start": "* * * * *", "end": "0 0 1 1 *", "minReplicas": 4, "maxReplicas": 6}
SPEC = {
    "targetRef": WEB,
    "horizontal": {"minReplicas": 1, "maxReplicas": 3, "metrics": [CPU]},
    "vertical": {"updatePolicy": {"updateMode": "Off"}},
    "schedule": {"timeZone": "Europe/Berlin", "rules": [ALWAYS]},
    "forecast": {"timeZone": "Europe/Berlin"},
}
REFUSED = (
    ({"targetRef": WEB}, "at least one of horizontal, vertical and schedule is required"),
    ({**SPEC, "horizontal": None}, "forecast needs a horizontal section"),
    ({**SPEC, "schedule": {"rules": [{**ALWAYS, "at": "@daily"}]}}, "write either at, or start and end"),
    ({**SPEC, "schedule": {"rules": [{**ALWAYS, "replicas": 3}]}}, "write either replicas, or minReplicas"),
    (
        {**SPEC, "schedule": {"rules": [{**ALWAYS, "maxReplicas": 3}]}},
        "maxReplicas must not be below minReplicas",
    ),
)


class Kinds(Defined):
    """The kinds on a plane."""

    def __init__(self, place):
        super().__init__(place, (*definitions(), *vpa_definitions()), (ELASTIC_WORKLOADS, VPAS))

    async def add(self, name, spec):
        body = {"metadata": {"name": name}, "spec": spec}
        return await self.cluster.create(ELASTIC_WORKLOADS, body, namespace=self.home)

    async def status(self, name):
        return (await self.cluster.get(ELASTIC_WORKLOADS, name, namespace=self.home)).status

    async def acts(self):
        """Whether each section has its expected effect."""
        found = await self.cluster.get(ELASTIC_WORKLOADS, "web", namespace=self.home)
        status = found.status
        return (
            is_accepted(found)
            and status.schedule is not None
            and (status.schedule.min_replicas, status.schedule.max_replicas) == (4, 6)
            and status.horizontal is not None
            and status.horizontal.desired_replicas == 6
            and status.vertical is not None
            and status.vertical.recommendation is not None
        )

    async def replicas(self):
        return (await self.cluster.get(DEPLOYMENTS, "web", namespace=self.home)).spec.replicas

    async def dump(self, kind, name):
        """Return an object as ``kubectl get -o json`` prints it."""
        found = await self.cluster.get(kind.untyped, name, namespace=self.home)
        return {"apiVersion": kind.api_version, "kind": kind.kind, **found}


def written(*dumped):
    """Return dumped objects as a person would have written them."""
    whole = {"apiVersion": "v1", "kind": "List", "items": list(dumped)}
    return objects_of(json.dumps(whole).encode(), "dump")


def test_all_sections_act_and_conversion_loses_nothing(audited, tmp_path):
    """No HPA is there for the built-in controller; load, clock and usage count; a dump comes back as it was."""

    async def run(clock):
        async with town(audited, clock, tmp_path, ROOMY) as place:
            kinds, cluster, home = Kinds(place), place.cluster, place.home
            await kinds.define()
            try:
                for number, (spec, words) in enumerate(REFUSED):
                    with pytest.raises(Invalid) as refused:
                        await kinds.add(f"refused-{number}", spec)
                    assert words in str(refused.value)
                await cluster.create(
                    DEPLOYMENTS, builders.deployment("web", replicas=2, cpu="100m"), namespace=home
                )
                place.load.set("web", 2000)
                await kinds.add("web", SPEC)
                before = await kinds.dump(ELASTIC_WORKLOADS, "web")
                assert before["spec"]["forecast"] == {"mode": "calendar", "timeZone": "Europe/Berlin"}
                async with kubetide_run(place, "kubetide-elastic", *FLAGS):
                    await kinds.waits("all sections act", kinds.acts)
                    assert await kinds.replicas() == 6
                    hpa = builders.hpa("other", "web", max_replicas=2)
                    await cluster.create(HPAS, hpa, namespace=home)

                    async def steps_back():
                        return not is_accepted(await cluster.get(ELASTIC_WORKLOADS, "web", namespace=home))

                    await kinds.waits("it steps back", steps_back)
                    await place.until_reported("ElasticWorkload", "SuccessfulRescale")
                after = await kinds.dump(ELASTIC_WORKLOADS, "web")
                assert after["spec"] == before["spec"]
                [condition] = (await kinds.status("web")).conditions
                assert "HorizontalPodAutoscaler other is in the way" in condition.message
                events = (await cluster.list(EVENTS, namespace=home)).items
                about = {one.involved_object.kind for one in events if one.reason == "SuccessfulRescale"}
                assert about <= {"ElasticWorkload", "HorizontalPodAutoscaler"}
                managers = {
                    one["manager"]: one.get("subresource") for one in after["metadata"]["managedFields"]
                }
                assert "status" in managers.values()
                await converts(kinds)
            finally:
                await kinds.forget()

    async def converts(kinds):
        cluster, home = kinds.cluster, kinds.home
        vpa = {"metadata": {"name": "other-vpa", "labels": {"v": "1e3"}}, "spec": {"targetRef": WEB}}
        await cluster.create(VPAS, vpa, namespace=home)
        dumps = [await kinds.dump(HPAS, "other"), await kinds.dump(VPAS, "other-vpa")]
        there = to_elastic(written(*dumps))
        assert there.refused == []
        [made] = there.objects
        await cluster.create(ELASTIC_WORKLOADS, made, namespace=home)
        stored = await kinds.dump(ELASTIC_WORKLOADS, "other")
        assert stored["spec"] == made["spec"]
        back = from_elastic(written(stored))
        assert back.refused == []
        assert back.objects == written(*dumps)

    run_real(run)
