"""Custom targets of updater and admission controller: their scales are read once a minute, and told when they change."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.vertical.custom_kinds import SCALE, TABS, WHERE, definition
from tests.vertical.making import NOW, pod, state, vpa, workloads

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS
from kubetide.ports.errors import Forbidden, Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds
from kubetide.vertical.controller.scales import ScaleReader
from kubetide.vertical.updater.decide import decide
from kubetide.vertical.workloads import view_of


def test_scales_are_read_once_a_minute_and_told_when_they_change():
    """A target that is made after its VPA is known a minute later; one that stays as it is is told once."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TABS, scale=SCALE))
        target = {"apiVersion": TABS.api_version, "kind": TABS.kind, "name": "tab"}
        own = vpa(targetRef=target)
        reader = ScaleReader(cluster, clock)

        async def told(after):
            await clock.sleep(after)
            found = await reader.read([own], {})
            assert found.gone == []
            return [one.selector or one.problem for one in found.changed]

        assert await told(seconds(0)) == ["CronTab default/tab does not exist"]
        status = {"replicas": 1, "selector": "app=web"}
        tab = {"metadata": {"name": "tab"}, "spec": {"replicas": 1}, "status": status}
        await cluster.create(TABS, tab, **WHERE)
        assert await told(seconds(59)) == []
        assert await told(seconds(1)) == ["app=web"]
        assert await told(minutes(1)) == []
        await cluster.patch(TABS, "tab", {"status": {"selector": "app=other"}}, **WHERE)
        assert await told(minutes(1)) == ["app=other"]
        assert await reader.read([], {}) == ([], [("CronTab", "default", "tab")])
        assert await told(seconds(0)) == ["app=other"], "read at once for a VPA that comes again"

    run_virtual(main, start=NOW)


def test_a_scale_that_is_not_read_makes_no_other_late():
    """Of a resource whose versions a webhook converts that hangs, what was read last holds; the others are read."""

    class Hang:
        async def before(self, request):
            if request.subresource == "scale" and request.name == "slow":
                await asyncio.sleep(50)

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TABS, scale=SCALE))
        vpas = []
        for name in ("slow", "tab"):
            status = {"replicas": 1, "selector": f"app={name}"}
            body = {"metadata": {"name": name}, "spec": {"replicas": 1}, "status": status}
            await cluster.create(TABS, body, **WHERE)
            target = {"apiVersion": TABS.api_version, "kind": TABS.kind, "name": name}
            vpas.append(vpa(name=name, targetRef=target))
        reader = ScaleReader(cluster, clock)
        await reader.read(vpas, {})
        cluster.faults = Hang()
        await cluster.patch(TABS, "tab", {"status": {"selector": "app=other"}}, **WHERE)
        await clock.sleep(minutes(1))
        begun = clock.now()
        found = await reader.read(vpas, {})
        assert clock.now() - begun == seconds(10)
        assert [one.selector for one in found.changed] == ["app=other"]
        unknown = await ScaleReader(cluster, clock).read(vpas, {})
        assert [one.unreadable for one in unknown.changed] == [True, False]

    run_virtual(main, start=NOW)


def test_a_custom_resource_with_an_unreadable_selector_stops_no_other_target():
    """The API server passes on any text as the selector of a scale; only the VPA of that resource goes without pods."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TABS, scale=SCALE))
        status = {"replicas": 2, "selector": "app=web and nothing else"}
        tab = {"metadata": {"name": "tab"}, "spec": {"replicas": 2}, "status": status}
        await cluster.create(TABS, tab, **WHERE)
        odd = vpa(name="odd", target=(TABS.kind, "tab"))
        reference = msgspec.structs.replace(odd.spec.target_ref, api_version=TABS.api_version)
        odd = msgspec.structs.replace(odd, spec=msgspec.structs.replace(odd.spec, target_ref=reference))
        found = await ScaleReader(cluster, clock).read([odd], {})
        pods = [pod("web-0"), pod("web-1"), pod("tab-0", owner=(TABS.kind, "tab"))]
        commands, result = decide(state(pods, [odd, vpa()], views=[*workloads(2), *found.changed]), NOW)
        assert [command.pod for command in commands] == [("default", "web-0")]
        reasons = {one.subject: one.code for one in result.reasons}
        assert reasons["default/odd"] == "VpaWithoutTarget"

    run_virtual(main, start=NOW)


@pytest.mark.parametrize("fault", ["not served", "refused", "no answer"])
def test_a_target_whose_owner_cannot_be_read_is_left_alone(fault):
    """Its owner may be scalable, and then the VPA would have to name that: upstream matches no pod either."""

    class Faulty(EmbeddedCluster):
        async def get_scale(self, *args, **named):
            if fault == "refused":
                raise Forbidden("scales are not for you")
            return await super().get_scale(*args, **named)

        async def kinds(self):
            if fault == "no answer":
                raise Unavailable("no discovery now")
            return await super().kinds()

    async def main(clock):
        cluster = Faulty(Store(), clock, seed=1)
        if fault != "not served":
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TABS, scale=SCALE))
        views = [
            msgspec.structs.replace(one, owner=(TABS.kind, "tab"), owner_version=TABS.api_version)
            if one.kind == "Deployment"
            else one
            for one in workloads(2)
        ]
        found = await ScaleReader(cluster, clock).read([vpa()], {one.key: one for one in views})
        pods = [pod("web-0"), pod("web-1")]
        commands, _ = decide(state(pods, [vpa()], views=[*views, *found.changed]), NOW)
        assert commands == []

    run_virtual(main, start=NOW)


@pytest.mark.parametrize("scale", [SCALE, None])
def test_a_target_that_is_owned_by_something_scalable_is_not_the_topmost(scale):
    """A VPA has to name the owner, as long as that has a scale: without one it leaves the Deployment what it is."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TABS, scale=scale))
        tab = {"metadata": {"name": "tab"}, "spec": {"replicas": 2}, "status": {"selector": "app=web"}}
        owner = await cluster.create(TABS, tab, **WHERE)
        body = builders.deployment("web", replicas=2)
        body["metadata"]["ownerReferences"] = [
            {
                "apiVersion": TABS.api_version,
                "kind": TABS.kind,
                "name": "tab",
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ]
        web = view_of("Deployment", await cluster.create(DEPLOYMENTS, body, **WHERE))
        views = [web, *(one for one in workloads(2) if one.kind != "Deployment")]
        found = await ScaleReader(cluster, clock).read([vpa()], {one.key: one for one in views})
        pods = [pod("web-0"), pod("web-1")]
        commands, _ = decide(state(pods, [vpa()], views=[*views, *found.changed]), NOW)
        assert bool(commands) is (scale is None)

    run_virtual(main, start=NOW)
