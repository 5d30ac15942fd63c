"""Managed instance groups that are created like a pattern: by the GCE provider, and by the whole node loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest
from msgspec.structs import replace
from tests.clouds.creating import FleetWorld, create_fill_empty_and_delete
from tests.clouds.fakes.direct import Direct
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.gce import KUBE_ENV, PROJECT, ROOT, ZONE, FakeGce
from tests.clouds.fakes.server import served

from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.clouds.gce.api import ComputeApi, Manager, refusal
from kubetide.clouds.gce.cloud import GceCloud
from kubetide.clouds.gce.creation import obstacle_of
from kubetide.clouds.gce.settings import GceSettings, parse_discoveries, parse_nodes
from kubetide.clouds.gce.template import InstanceTemplate
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CloudUnderTest
from kubetide.testing.cloud_creation_battery import CREATION_CASES
from kubetide.units.time import minutes

LARGE = f"auto-workers-e2-standard-16-{ZONE}"


def url(name):
    return f"{ROOT}/projects/{PROJECT}/zones/{ZONE}/instanceGroups/{name}"


def pattern(types="e2-standard-16 e2-standard-4", machine_type="e2-standard-2", **properties):
    """Return an instance template that marks its groups as patterns, as the API describes it."""
    return {
        "kind": "compute#instanceTemplate",
        "name": "workers-v1",
        "description": "made by hand",
        "properties": {
            "machineType": machine_type,
            "disks": [
                {
                    "kind": "compute#attachedDisk",
                    "boot": True,
                    "initializeParams": {"diskSizeGb": "100", "diskType": "pd-balanced"},
                }
            ],
            "networkInterfaces": [{"name": "nic0", "network": "global/networks/shop"}],
            "tags": {"items": ["shop-node"], "fingerprint": "f"},
            "metadata": {
                "kind": "compute#metadata",
                "fingerprint": "f",
                "items": [
                    {"key": "kube-env", "value": KUBE_ENV},
                    {"key": "startup-script", "value": "join"},
                    {"key": "kubetide-create", "value": types},
                ],
            },
            **properties,
        },
    }


def make_pattern(gce, template):
    gce.templates["workers-v1"] = template
    gce.managers["workers"] = {
        "instanceTemplate": f"{ROOT}/projects/{PROJECT}/global/instanceTemplates/workers-v1",
        "autoHealingPolicies": [{"healthCheck": "h", "initialDelaySec": 300}],
        "fingerprint": "f",
    }


NODES = (f"0:3:{url('workers')}",)


@asynccontextmanager
async def world(template=None, *, nodes=NODES, discovery=(), page=500):
    """A pattern and a plain group on a server, and what makes providers over it."""
    clock = Clock()
    fleet = Fleet(clock)
    gce = FakeGce(fleet, page)
    make_pattern(gce, template or pattern())
    for name in ("workers", "plain"):
        fleet.add(name)

    async def token():
        return "a-token"

    async with served(gce) as address, HttpSender() as send:
        rest = Rest(send, clock, refusal)
        api = ComputeApi(rest, clock, token, PROJECT, root=f"{address}/compute/v1")
        settings = GceSettings(
            project=PROJECT, location=ZONE, nodes=parse_nodes(nodes), discovery=parse_discoveries(discovery)
        )
        yield gce, clock, lambda: GceCloud(api, settings, clock, seed=7)


@pytest.mark.parametrize("case", CREATION_CASES, ids=lambda case: case.__name__)
def test_gce_passes_the_battery_of_creation(case):
    """Groups like a pattern are created and deleted as the port promises."""

    async def main():
        async with world() as (_, clock, connect):
            name = url("workers")
            await case(CloudUnderTest(connect(), clock, group=name, kept=name, patience=minutes(10)))

    asyncio.run(main())


def test_a_group_is_like_its_pattern():
    """It has a template of its own: the pattern's with another machine type, and without its mark."""

    async def main():
        async with world() as (gce, _, connect):
            cloud = connect()
            candidates = {one.new.id: one for one in await cloud.group_candidates()}
            assert list(candidates) == [url(LARGE), url(f"auto-workers-e2-standard-4-{ZONE}")]
            meant = candidates[url(LARGE)]
            assert meant.new.zones == (ZONE,)
            made = await cloud.create_group(meant.new)
            assert made == replace(meant.group, exists=True, instances=(), debug=made.debug)
            return made, gce.managers[LARGE], gce.templates[LARGE]

    made, manager, template = asyncio.run(main())
    node = made.template.node
    assert (node.metadata.labels["team"], node.status.capacity["cpu"]) == ("shop", "16")
    assert manager == {
        "name": LARGE,
        "baseInstanceName": LARGE,
        "description": "kubetide.dev/created-from=workers",
        "instanceTemplate": f"projects/{PROJECT}/global/instanceTemplates/{LARGE}",
        "autoHealingPolicies": [{"healthCheck": "h", "initialDelaySec": 300}],
    }
    assert template == {
        "name": LARGE,
        "description": "kubetide.dev/created-from=workers",
        "properties": {
            "machineType": "e2-standard-16",
            "disks": [{"boot": True, "initializeParams": {"diskSizeGb": "100", "diskType": "pd-balanced"}}],
            "networkInterfaces": [{"network": "global/networks/shop"}],
            "tags": {"items": ["shop-node"]},
            "metadata": {
                "items": [{"key": "kube-env", "value": KUBE_ENV}, {"key": "startup-script", "value": "join"}]
            },
        },
    }


@pytest.mark.parametrize("discovered", [False, True], ids=["by URL", "by prefix"])
def test_a_later_process_finds_what_an_earlier_one_created(discovered):
    """Groups are found by their description, in the pattern's bounds, and are still this program's to delete."""
    found = {"nodes": (), "discovery": ("mig:namePrefix=work,max=3",)} if discovered else {}

    async def main():
        async with world(**found) as (gce, clock, connect):
            earlier = connect()
            first = (await earlier.group_candidates())[0]
            made = await earlier.create_group(first.new)
            later = connect()
            assert made in await later.refresh()
            if discovered:
                gce.fleet.groups["elsewhere"] = gce.fleet.groups.pop("workers")
                await clock.sleep(minutes(1))
                assert [one.id for one in await later.refresh()] == [made.id], "it outlives its pattern"
            await later.delete_group(made.id)
            assert made.id not in [one.id for one in await later.refresh()]
            assert LARGE not in gce.fleet.groups
            assert LARGE not in gce.templates

    asyncio.run(main())


def test_a_created_group_stays_known_while_its_zone_cannot_be_listed():
    """A list that fails takes no group away."""

    async def main():
        async with world() as (gce, clock, connect):
            cloud = connect()
            made = await cloud.create_group((await cloud.group_candidates())[0].new)
            await cloud.refresh()
            await clock.sleep(minutes(1))
            gce.errors = [(403, "forbidden")]
            assert made.id in [one.id for one in await cloud.refresh()]
            assert not gce.errors

    asyncio.run(main())


def test_a_group_that_a_person_names_is_no_longer_ours_to_delete():
    """With ``--nodes`` somebody has taken over a group that was created: it stays, however empty."""

    async def main():
        async with world(nodes=(*NODES, f"0:5:{url(LARGE)}")) as (gce, _, connect):
            gce.fleet.add(LARGE)
            gce.managers[LARGE] = {"description": "kubetide.dev/created-from=workers"}
            cloud = connect()
            [group] = [one for one in await cloud.refresh() if one.id == url(LARGE)]
            assert (group.autoprovisioned, group.max_size) == (False, 5)
            with pytest.raises(CloudError, match="--nodes names it"):
                await cloud.delete_group(url(LARGE))
            assert LARGE in gce.fleet.groups

    asyncio.run(main())


def test_labels_of_any_name_are_copied():
    """``kind`` is the server's in parts of its own, and the owner's among labels."""
    labels = {"kind": "worker", "fingerprint": "x"}

    async def main():
        async with world(pattern(labels=labels)) as (gce, _, connect):
            cloud = connect()
            await cloud.create_group((await cloud.group_candidates())[0].new)
            return gce.templates[LARGE]["properties"]

    assert asyncio.run(main())["labels"] == labels


def test_what_is_refused():
    """Names that are taken, instances that came since, and refusals are errors; no template is left behind."""

    async def main():
        async with world() as (gce, _, connect):
            cloud = connect()
            new = (await cloud.group_candidates())[0].new
            gce.fleet.add(LARGE)
            with pytest.raises(CloudError, match="there is a managed instance group of this name already"):
                await cloud.create_group(new)
            assert LARGE not in gce.templates
            del gce.fleet.groups[LARGE]
            gce.refused_changes = {"POST instanceGroupManagers": (403, "forbidden")}
            with pytest.raises(CloudError) as caught:
                await cloud.create_group(new)
            assert caught.value.cause == "Permission"
            assert LARGE not in gce.templates
            gce.templates[LARGE] = {**pattern(), "name": LARGE}
            with pytest.raises(CloudError, match="alreadyExists"):
                await cloud.create_group(new)
            assert gce.templates[LARGE]["description"] == "made by hand"
            gce.templates[LARGE]["description"] = "kubetide.dev/created-from=workers"
            made = await cloud.create_group(new)
            assert gce.templates[LARGE]["properties"]["machineType"] == "e2-standard-16"
            gce.fleet.grow(LARGE, 1)
            with pytest.raises(CloudError, match="it has machines"):
                await cloud.delete_group(made.id)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("manager", "properties", "words"),
    [
        ({}, {}, ""),
        ({"name": "gke-shop-pool-grp"}, {}, "GKE manages it"),
        ({}, {"labels": {"goog-gke-node": ""}}, "GKE manages it"),
        ({"statefulPolicy": {}, "instanceFlexibilityPolicy": {}}, {}, ""),
        ({"statefulPolicy": {"preservedState": {"disks": {"d": {}}}}}, {}, "keeps the state"),
        ({"instanceFlexibilityPolicy": {"instanceSelections": {"s": {}}}}, {}, "several machine types"),
        (
            {},
            {"guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}]},
            "accelerators",
        ),
        ({}, {"disks": [{"type": "SCRATCH"}]}, "local SSDs"),
        ({}, {"minCpuPlatform": "Intel Ice Lake"}, "CPU platform"),
        ({}, {"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}}, "reservation"),
        (
            {},
            {"scheduling": {"automaticRestart": True}, "advancedMachineFeatures": {"threadsPerCore": 1}},
            "",
        ),
        ({}, {"scheduling": {"nodeAffinities": [{"key": "k", "operator": "IN"}]}}, "sole-tenant nodes"),
        ({}, {"advancedMachineFeatures": {"visibleCoreCount": 2}}, "part of their type's CPUs"),
    ],
)
def test_what_cannot_be_copied_is_an_obstacle(manager, properties, words):
    """A group whose template is for its own machine type, or that another manages, is no pattern, and says why."""
    described = msgspec.convert({"name": "workers", **manager}, Manager)
    template = msgspec.convert(pattern(**properties), InstanceTemplate, strict=False)
    obstacle = obstacle_of(described, template, 3)
    assert words in obstacle
    assert bool(words) == bool(obstacle)
    assert "maximum" in obstacle_of(described, template, 0) or words


def test_a_pattern_says_what_is_wrong_with_it():
    """A type that there is not, that has GPUs or another architecture, is named; an obstacle leaves no candidate."""

    async def main():
        mark = "metadata item kubetide-create"
        types = "e2-standard-16 e9-huge g2-standard-16 t2a-standard-16"
        async with world(pattern(types)) as (gce, _, connect):
            cloud = connect()
            assert [one.new.id for one in await cloud.group_candidates()] == [url(LARGE)]
            [group] = await cloud.refresh()
            assert group.warnings == (
                f"{mark}: instance type e9-huge is not known; correct it",
                f"{mark}: instance type g2-standard-16 is left out: it has GPUs, which kube-env does not say",
                f"{mark}: instance type t2a-standard-16 is left out: it is ARM64, and the pattern's machines are X86_64",
            )
            assert gce.calls.count("GET e9-huge") == 1, "a missing type is requested once"
        async with world(pattern(minCpuPlatform="Intel Ice Lake")) as (_, _, connect):
            cloud = connect()
            assert await cloud.group_candidates() == ()
            [group] = await cloud.refresh()
            [warning] = group.warnings
            assert warning.startswith(
                f"{mark}: no group can be created like this one: its machines are of one CPU"
            )

    asyncio.run(main())


@pytest.mark.slow
def test_the_loop_creates_a_group_and_deletes_it_again():
    """Pods that no group's machines can hold get a group of their own; it goes when it has been empty for a while."""

    async def token():
        return "a-token"

    def connect(fleet, clock):
        gce = FakeGce(fleet, 500)
        make_pattern(gce, pattern("e2-standard-16"))
        api = ComputeApi(
            Rest(Direct(gce), clock, refusal), clock, token, PROJECT, root="http://gce/compute/v1"
        )
        settings = GceSettings(project=PROJECT, location=ZONE, nodes=parse_nodes((f"0:9:{url('workers')}",)))
        return GceCloud(api, settings, clock, seed=7)

    def node_id(_group, machine):
        return f"gce://{PROJECT}/{ZONE}/{machine}"

    def world_of(clock, groups, **settings):
        return FleetWorld(clock, groups, connect=connect, node_id=node_id, **settings)

    create_fill_empty_and_delete("workers", world_of, begins=LARGE)
