"""Scale sets that are created like a pattern: by the Azure provider, and by the whole node loop."""

from __future__ import annotations

import asyncio
import copy
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from tests.clouds.creating import FleetWorld, create_fill_empty_and_delete
from tests.clouds.fakes.azure import GROUP, SUBSCRIPTION, FakeAzure
from tests.clouds.fakes.direct import Direct
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.server import Answer, served

from kubetide.clouds.azure.api import ComputeApi, Subscription, refusal
from kubetide.clouds.azure.cloud import AzureCloud
from kubetide.clouds.azure.creation import obstacle_of
from kubetide.clouds.azure.discovery import parse_discovery
from kubetide.clouds.azure.settings import AzureSettings
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CloudUnderTest
from kubetide.testing.cloud_creation_battery import CREATION_CASES
from kubetide.units.time import minutes

LARGE = "auto-workers-Standard_D16s_v3-westeurope"
PREFIX = "k8s.io_cluster-autoscaler_node-template_"


def pattern(name="workers", sizes="Standard_D16s_v3 Standard_E4s_v3", **tags):
    """Return a set over two zones whose machines join by user data, as Azure describes it."""
    network = (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v"
    )
    return {
        "name": name,
        "location": "westeurope",
        "sku": {"name": "Standard_D2s_v3", "tier": "Standard", "capacity": 0},
        "zones": ["1", "2"],
        "identity": {
            "type": "UserAssigned",
            "userAssignedIdentities": {"/identities/nodes": {"principalId": "p", "clientId": "c"}},
        },
        "tags": {
            "cluster": "shop",
            "min": "0",
            "max": "4",
            "kubetide.dev_create": sizes,
            f"{PREFIX}label_team": "shop",
            f"{PREFIX}taint_dedicated": "shop:NoSchedule",
            f"{PREFIX}resources_ephemeral-storage": "100Gi",
            f"{PREFIX}resources_nvidia.com_gpu": "1",
            **tags,
        },
        "properties": {
            "orchestrationMode": "Uniform",
            "singlePlacementGroup": False,
            "zoneBalance": True,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "userData": "am9pbg==",
                "timeCreated": "2026-03-01T00:00:00Z",
                "osProfile": {
                    "computerNamePrefix": "workers",
                    "adminUsername": "shop",
                    "linuxConfiguration": {
                        "disablePasswordAuthentication": True,
                        "ssh": {"publicKeys": [{"path": "/home/shop/.ssh/authorized_keys", "keyData": "k"}]},
                    },
                },
                "storageProfile": {
                    "osDisk": {"diskSizeGB": 128, "createOption": "FromImage"},
                    "imageReference": {
                        "publisher": "Canonical",
                        "offer": "ubuntu",
                        "sku": "server",
                        "version": "latest",
                        "exactVersion": "24.04.1",
                    },
                },
                "networkProfile": {
                    "networkInterfaceConfigurations": [
                        {
                            "name": "nic",
                            "properties": {"primary": True, "subnet": {"id": f"{network}/subnets/s"}},
                        }
                    ]
                },
                "extensionProfile": {
                    "extensions": [
                        {
                            "name": "health",
                            "id": "/extensions/health",
                            "properties": {
                                "publisher": "Microsoft.ManagedServices",
                                "type": "ApplicationHealthLinux",
                                "typeHandlerVersion": "1.0",
                                "settings": {"port": 10250},
                                "provisioningState": "Succeeded",
                            },
                        }
                    ]
                },
            },
        },
    }


NODES = (NodeSpec("workers", 0, 3),)


@asynccontextmanager
async def world(model=None, *, nodes=NODES, page=2, **settings):
    """A pattern and a plain set on a server, and what makes providers over it."""
    clock = Clock()
    fleet = Fleet(clock, shown_s=0)
    azure = FakeAzure(fleet, page=page)
    azure.models["workers"] = model or pattern()
    for name in ("workers", "plain"):
        fleet.add(name)

    async def token():
        return "a-token"

    async with served(azure) as address, HttpSender() as send:
        api = ComputeApi(Rest(send, clock, refusal), clock, token, Subscription(SUBSCRIPTION, GROUP, address))
        yield (
            azure,
            clock,
            lambda *more: AzureCloud(api, AzureSettings(nodes=(*nodes, *more), **settings), clock),
        )


@pytest.mark.parametrize("case", CREATION_CASES, ids=lambda case: case.__name__)
def test_azure_passes_the_battery_of_creation(case):
    """Sets like a pattern are created and deleted as the port promises."""

    async def main():
        async with world() as (_, clock, connect):
            await case(
                CloudUnderTest(connect(), clock, group="workers", kept="workers", patience=minutes(10))
            )

    asyncio.run(main())


def test_a_set_is_like_its_pattern():
    """It has the pattern's profile with another size, in one zone, its own names, and the tags that are not of a machine."""

    async def main():
        async with world() as (azure, _, connect):
            cloud = connect()
            candidates = {one.new.id: one for one in await cloud.group_candidates()}
            assert list(candidates) == [
                f"auto-workers-Standard_{size}-westeurope-{zone}"
                for size in ("D16s_v3", "E4s_v3")
                for zone in "12"
            ]
            meant = candidates[f"{LARGE}-2"]
            made = await cloud.create_group(meant.new)
            assert made == replace(meant.group, exists=True, instances=(), debug=made.debug)
            return made, azure.models[made.id]

    made, model = asyncio.run(main())
    node = made.template.node
    assert node.metadata.labels["team"] == "shop"
    assert node.metadata.labels["topology.kubernetes.io/zone"] == "westeurope-2"
    assert not any("kubetide" in label for label in node.metadata.labels)
    assert [taint.key for taint in node.spec.taints] == ["dedicated"]
    assert (node.status.capacity["cpu"], node.status.capacity["ephemeral-storage"]) == ("16", "100Gi")
    assert model["sku"] == {"name": "Standard_D16s_v3", "tier": "Standard", "capacity": 0}
    assert model["zones"] == ["2"]
    assert model["identity"] == {"type": "UserAssigned", "userAssignedIdentities": {"/identities/nodes": {}}}
    tags = model["tags"]
    assert (tags["kubetide.dev_created-from"], tags["cluster"], tags["min"], tags["max"]) == (
        "workers",
        "shop",
        "0",
        "3",
    )
    assert not {"kubetide.dev_create", f"{PREFIX}resources_nvidia.com_gpu"} & tags.keys()
    expected = copy.deepcopy(pattern()["properties"])
    del expected["zoneBalance"], expected["virtualMachineProfile"]["timeCreated"]
    del expected["virtualMachineProfile"]["storageProfile"]["imageReference"]["exactVersion"]
    [extension] = expected["virtualMachineProfile"]["extensionProfile"]["extensions"]
    del extension["id"], extension["properties"]["provisioningState"]
    expected["virtualMachineProfile"]["osProfile"]["computerNamePrefix"] = (
        "auto-workers-standard-d16s-v3-westeurope-2"
    )
    assert model["properties"] == expected


@pytest.mark.parametrize("discovered", [False, True], ids=["by name", "by tags"])
def test_a_later_process_finds_what_an_earlier_one_created(discovered):
    """Sets of a pattern are found by their tags, with their bounds, and are still this program's to delete."""
    settings = {"nodes": (), "discovery": (parse_discovery("label:cluster=shop"),)} if discovered else {}

    async def main():
        async with world(**settings) as (azure, _, connect):
            earlier = connect()
            first = (await earlier.group_candidates())[0]
            made = await earlier.create_group(first.new)
            later = connect()
            assert made in await later.refresh()
            await later.delete_group(made.id)
            assert made.id not in [one.id for one in await later.refresh()]
            assert made.id not in azure.fleet.groups
            if discovered:
                with pytest.raises(CloudError, match="another made it"):
                    await later.delete_group("plain")

    asyncio.run(main())


def test_a_set_that_a_person_names_is_no_longer_ours_to_delete():
    """With ``--nodes`` somebody has taken over a set that was created: it stays, however empty."""

    async def main():
        async with world() as (azure, _, connect):
            cloud = connect()
            made = await cloud.create_group((await cloud.group_candidates())[0].new)
            later = connect(NodeSpec(made.id, 0, 3))
            [group] = [one for one in await later.refresh() if one.id == made.id]
            assert not group.autoprovisioned
            with pytest.raises(CloudError, match="--nodes names it"):
                await later.delete_group(made.id)
            assert made.id in azure.fleet.groups

    asyncio.run(main())


def test_a_group_that_is_listed_late_is_there_at_once():
    """A group that was just created is known and grows, also while the cloud's list does not have it yet."""

    async def main():
        async with world() as (azure, clock, connect):
            cloud = connect()
            new = (await cloud.group_candidates())[0].new
            azure.unlisted.add(new.id)
            made = await cloud.create_group(new)
            assert made.id == new.id
            await cloud.increase_size(made.id, 1)
            await clock.sleep(minutes(2))
            [group] = [one for one in await cloud.refresh() if one.id == made.id]
            assert (group.target_size, len(group.instances), group.stale) == (1, 1, "")

    asyncio.run(main())


def test_what_is_refused():
    """Names that are taken, machines that came since, and what Azure itself refuses are errors; nothing is left behind."""

    async def main():
        async with world() as (azure, _, connect):
            cloud = connect()
            new = (await cloud.group_candidates())[0].new
            azure.fleet.add(new.id)
            azure.models[new.id] = {**pattern(new.id), "tags": {}}
            with pytest.raises(CloudError, match="there is a scale set of this name already"):
                await cloud.create_group(new)
            del azure.fleet.groups[new.id]
            azure.operation = ("Failed", {"code": "SkuNotAvailable", "message": "not in this zone"})
            with pytest.raises(CloudError, match="SkuNotAvailable") as caught:
                await cloud.create_group(new)
            assert caught.value.cause == "OutOfCapacity"
            assert new.id not in azure.fleet.groups
            azure.operation = ("Succeeded", None)
            azure.refused_changes = [(403, "AuthorizationFailed")]
            with pytest.raises(CloudError) as caught:
                await cloud.create_group(new)
            assert caught.value.cause == "Permission"
            made = await cloud.create_group(new)
            azure.fleet.grow(made.id, 1)
            with pytest.raises(CloudError, match="it has machines"):
                await cloud.delete_group(made.id)

    asyncio.run(main())


def changed(**parts):
    """Return the pattern with some of its parts replaced; a path's steps are separated by two underscores."""
    model = pattern()
    for path, value in parts.items():
        *steps, last = path.split("__")
        part = model
        for step in steps:
            part = part[step]
        part[last] = value
    return model


PROFILE = "properties__virtualMachineProfile"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, ""),
        ({f"{PROFILE}__userData": None, f"{PROFILE}__storageProfile__imageReference": {"id": "/i"}}, ""),
        ({f"{PROFILE}__userData": None}, "neither user data nor an image of your own"),
        ({"tags__aks-managed-poolName": "np1"}, "AKS manages it"),
        ({"identity": {"type": "SystemAssigned", "principalId": "p"}}, "user-assigned identity"),
        ({f"{PROFILE}__osProfile__linuxConfiguration": {}}, "have a password"),
        (
            {
                f"{PROFILE}__osProfile__windowsConfiguration": {},
                f"{PROFILE}__osProfile__linuxConfiguration": None,
            },
            "password",
        ),
        ({"properties__hostGroup": {"id": "/h"}}, "dedicated hosts"),
        ({f"{PROFILE}__hardwareProfile": {"vmSizeProperties": {"vCPUsAvailable": 2}}}, "part of their size"),
        ({f"{PROFILE}__billingProfile": {"maxPrice": -1}}, ""),
        ({f"{PROFILE}__billingProfile": {"maxPrice": 0.2}}, "maximum price"),
        ({"properties__skuProfile": {"vmSizes": []}}, "mixes sizes"),
        (
            {f"{PROFILE}__capacityReservation": {"capacityReservationGroup": {"id": "/c"}}},
            "capacity reservation",
        ),
        (
            {
                f"{PROFILE}__extensionProfile": {
                    "extensions": [{"name": "cse", "properties": {"type": "CustomScript"}}]
                }
            },
            "protected settings",
        ),
    ],
)
def test_what_cannot_be_copied_is_an_obstacle(parts, words):
    """A set that needs what Azure shows to nobody, or that another manages, is no pattern, and says why."""
    obstacle = obstacle_of(changed(**parts), 3)
    assert bool(obstacle) == bool(words)
    if words:

        async def main():
            async with world(changed(**parts)) as (_, _, connect):
                cloud = connect()
                assert await cloud.group_candidates() == ()
                [group] = await cloud.refresh()
                assert group.warnings == (
                    f"tag kubetide.dev_create: no group can be created like this one: {obstacle}",
                )

        asyncio.run(main())


def test_a_size_of_no_use_is_a_warning_and_the_others_hold():
    """A size that there is not, or of another architecture, is named, and is no candidate."""

    async def main():
        async with world(pattern(sizes="Standard_D16s_v3 Standard_Huge Standard_D16ps_v5")) as (
            _,
            _,
            connect,
        ):
            cloud = connect()
            assert [one.new.id for one in await cloud.group_candidates()] == [f"{LARGE}-1", f"{LARGE}-2"]
            [group] = await cloud.refresh()
            assert group.warnings == (
                "tag kubetide.dev_create: instance type Standard_Huge is not known; correct it",
                "tag kubetide.dev_create: instance type Standard_D16ps_v5 is left out: it is arm64, and the pattern's machines are amd64",
            )

    asyncio.run(main())


def test_patterns_are_read_when_they_change():
    """At rest a pattern costs nothing; once it has changed it is read again, and without one nothing more is asked."""

    async def main():
        async with world(page=500) as (azure, clock, connect):
            cloud = connect()
            await cloud.group_candidates()
            assert azure.calls.count("GET workers") == 1
            azure.calls.clear()
            await clock.sleep(minutes(1))
            await cloud.group_candidates()
            assert azure.calls == ["GET virtualMachineScaleSets"]
            azure.etag += 1
            await clock.sleep(minutes(1))
            await cloud.group_candidates()
            assert azure.calls.count("GET workers") == 1

    asyncio.run(main())


def test_a_pattern_that_cannot_be_read_says_so():
    """Its group is shown, with a warning that has the same words each time, and without candidates."""

    async def main():
        async with world(page=500) as (azure, _, connect):
            cloud = connect()
            answer = azure._answer

            def refusing(asked):
                if "$expand" in asked.query and asked.path.endswith("/workers"):
                    return Answer({"error": {"code": "AuthorizationFailed", "message": "no. 17"}}, 403)
                return answer(asked)

            azure._answer = refusing
            [group] = await cloud.refresh()
            assert group.template is not None
            assert group.warnings == (
                "tag kubetide.dev_create: no group can be created like this one: it cannot be read: AuthorizationFailed",
            )
            assert await cloud.group_candidates() == ()

    asyncio.run(main())


@pytest.mark.slow
def test_the_loop_creates_a_set_and_deletes_it_again():
    """Pods that no set's machines can hold get a set of their own; it goes when it has been empty for a while."""

    async def token():
        return "a-token"

    def connect(fleet, clock):
        azure = FakeAzure(fleet, page=500)
        model = pattern(sizes="Standard_D16s_v3")
        model["tags"] = {"kubetide.dev_create": "Standard_D16s_v3"}
        azure.models["workers"] = model
        rest = Rest(Direct(azure), clock, refusal)
        api = ComputeApi(rest, clock, token, Subscription(SUBSCRIPTION, GROUP, "http://azure"))
        return AzureCloud(api, AzureSettings(nodes=(NodeSpec("workers", 0, 9),)), clock)

    def node_id(group, machine):
        base = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP.lower()}/providers/Microsoft.Compute"
        return f"azure://{base}/virtualMachineScaleSets/{group}/virtualMachines/{machine}"

    def world_of(clock, groups, **settings):
        return FleetWorld(clock, groups, connect=connect, node_id=node_id, **settings)

    create_fill_empty_and_delete("workers", world_of, begins=LARGE)
