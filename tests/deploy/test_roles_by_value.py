"""What roles grant only with a value of the chart, and for which objects."""

from __future__ import annotations

import dataclasses

from tests.deploy.conftest import ACT, BOTH, IDLEST, NOMINATE
from tests.deploy.requests import Observed, granted_by, observed_horizontal
from tests.horizontal.running import START
from tests.nodes.live import SHORT, SMALL
from tests.nodes.live import World as NodesWorld

from kubetide.nodes.controller import NodesController
from kubetide.nodes.facts.nodes import NOMINATION_TAINT, has_taint
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.objects.kinds import NODES
from kubetide.objects.node import Taint
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import minutes
from kubetide.watching import Caches


def test_a_role_holds_for_the_objects_that_are_named(rendered):
    """The status ConfigMap of the settings, the Leases of the loops that run, in the namespace of the settings."""
    other = ("--set=config.status-config-map-name=mine", "--set=config.namespace=scaling")
    granted = granted_by(rendered(*BOTH, ACT, *other))
    roles = [one for one in granted if one.role.startswith("Role ")]
    assert {one.namespace for one in roles} == {"scaling"}
    assert {one.names for one in roles} == {
        (),
        ("mine",),
        ("kubetide-node-templates",),
        ("cluster-autoscaler-priority-expander",),
        ("cluster-autoscaler", "kubetide"),
    }


def test_pods_are_patched_only_where_a_value_enables_it(rendered):
    """The option idlest-first needs one verb more; the roles grant it by a value, and by nothing else."""

    async def main(clock):
        world, seen = observed_horizontal(clock)
        world.usage.milli = 20
        extra = {"metadata": {"annotations": {"horizontal.kubetide.io/idlest-first": "true"}}}
        await world.add(replicas=4, extra=extra)
        async with world.running():
            await clock.sleep(minutes(6))
            assert await world.replicas() < 4
        return seen

    seen = run_virtual(main, start=START)
    without, granted = granted_by(rendered(ACT)), granted_by(rendered(ACT, IDLEST))
    refused = {one for one in seen if not any(rule.allows(one) for rule in without)}
    assert {(one.verb, one.group, one.resource) for one in refused} == {("patch", "", "pods")}
    assert all(any(rule.allows(one) for rule in granted) for one in refused)
    assert len(granted - without) == 1


def test_pods_are_nominated_only_where_a_value_enables_it(rendered):
    """Groups with the taint for it need one verb more, and their nodes are opened without it, too."""

    async def main(clock):
        held = (Taint(key=NOMINATION_TAINT, effect="NoSchedule"),)
        world, seen = NodesWorld(clock, groups=(dataclasses.replace(SMALL, taints=held),)), set()
        observed = Observed(world.cluster, seen)
        world.caches = Caches(observed, clock)
        settings = NodesSettings(**SHORT, expander="least-cost")
        world.controller = NodesController(
            observed, world.cloud, clock, world.recorder, world.board, settings, seed=1, caches=world.caches
        )
        async with world.running():
            await world.deploy(replicas=6, cpu="900m")
            await clock.sleep(minutes(5))
            assert len(world.nodes) > 2
            assert not any(
                has_taint(one, NOMINATION_TAINT) for one in (await world.cluster.list(NODES)).items
            )
        return seen

    seen = run_virtual(main, start=START)
    nodes = (*BOTH, ACT)
    without, granted = granted_by(rendered(*nodes)), granted_by(rendered(*nodes, NOMINATE))
    refused = {one for one in seen if not any(rule.allows(one) for rule in without)}
    assert {(one.verb, one.group, one.resource) for one in refused} == {("patch", "", "pods/status")}
    assert all(any(rule.allows(one) for rule in granted) for one in refused)
    assert len(granted - without) == 1
