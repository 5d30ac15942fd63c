"""Nominations on a real control plane: Kubernetes' own scheduler binds pods where `least-cost` has planned them."""

from __future__ import annotations

import dataclasses

import pytest
from tests.plane.towns import ACCOUNT, MEDIUM, SOON, kubetide_run, requests_of, town

from kubetide.embedded.cloud.groups import GROUP_LABEL
from kubetide.embedded.draws import fixed
from kubetide.nodes.facts.nodes import NOMINATION_TAINT
from kubetide.objects.kinds import DEPLOYMENTS
from kubetide.objects.node import Taint
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import seconds

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("roles_of_the_chart")]

HELD = (Taint(key=NOMINATION_TAINT, effect="NoSchedule"),)
SMALL = dataclasses.replace(MEDIUM, name="small", min_size=0, taints=HELD, boot=fixed(seconds(5)))
LARGE = dataclasses.replace(SMALL, name="large", instance_type="m5.2xlarge", boot=fixed(seconds(1)))
CATALOGUE = """type,price_per_hour
m5.large,0.1
m5.2xlarge,0.4
"""


def test_pods_are_bound_to_the_nodes_that_were_bought_for_them(audited, tmp_path):
    """The large node is there first and would hold all the little pods, which are first in the scheduler's queue, too.

    A try of the scheduler between a nomination and the opening of the node loses the nomination, which another node's
    coming may bring about. So one of three towns must come out as planned; without nominations none does.
    """

    async def run(clock):
        for number in range(3):
            folder = tmp_path / str(number)
            folder.mkdir()
            async with town(audited, clock, folder, SMALL, LARGE) as place:
                if await is_as_planned(place):
                    return
        pytest.fail("no town came out as planned")

    run_real(run)
    asked = requests_of(audited, ACCOUNT)
    assert [one for one in asked if one.code == 403] == []
    nominated = [one.name for one in asked if (one.verb, one.resource) == ("patch", "pods/status")]
    assert any(name.startswith("big") for name in nominated)


async def is_as_planned(place):
    """Let a large and two small nodes be bought for one big and three little pods; return whether these are enough."""
    catalogue = place.folder / "prices.csv"
    catalogue.write_text(CATALOGUE)
    for name, replicas, cpu, pods in (("little", 3, "1500m", 3), ("big", 1, "6", 4)):
        body = builders.deployment(name, replicas=replicas, cpu=cpu)
        await place.cluster.create(DEPLOYMENTS, body, namespace=place.home)
        await place.until(
            f"{pods} pods wait",
            lambda pods=pods: sum(map(is_refused, place.pods.objects.values())) == pods,
        )
    flags = ("--act", "--controllers=nodes", "--expander=least-cost", f"--catalog={catalogue}")
    async with kubetide_run(place, ACCOUNT, *flags, *SOON):
        await place.until(
            "all run", lambda: (len(place.running("little")), len(place.running("big"))) == (3, 1)
        )
        assert place.nodes_with_taint(NOMINATION_TAINT) == []
    groups = {name: node.metadata.labels[GROUP_LABEL] for (_, name), node in place.nodes.objects.items()}
    found = sorted(groups[pod.spec.node_name] for pod in place.running("little"))
    bought = place.ledger.increased("large"), place.ledger.increased("small")
    return (bought, found) == ((1, 2), ["large", "small", "small"])


def is_refused(pod):
    return any(one.reason == "Unschedulable" for one in pod.status.conditions or ())
