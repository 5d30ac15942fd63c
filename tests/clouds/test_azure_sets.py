"""Azure's sets as they are described: discovery, tags, templates, spot sets, sizes of machines, patterns of new groups."""

from __future__ import annotations

import asyncio
import copy

import msgspec
import pytest
from tests.clouds.creating import created_like_its_pattern
from tests.clouds.fakes.fleet import Clock
from tests.clouds.fakes.server import Answer
from tests.clouds.vendors import Azure
from tests.clouds.vendors.azure import PREFIX, model
from tests.clouds.vendors.vendor import group_in

from kubetide.clouds.azure.api import ComputeApi, Subscription, refusal
from kubetide.clouds.azure.factory import sizes_of
from kubetide.clouds.azure.model import ScaleSet
from kubetide.clouds.azure.skus import find_type
from kubetide.clouds.azure.template import build_node
from kubetide.clouds.common.rest import Response, Rest
from kubetide.ports.errors import CloudError
from kubetide.units.time import minutes, seconds


def test_discovery_templates_and_offerings():
    """Sets are found by their tags, page by page, with labels, disks, zones and a price."""

    async def story(here):
        groups = await here.connect().refresh()
        assert [(one.id, one.min_size, one.max_size) for one in groups] == [("system", 0, 4), ("web", 0, 4)]
        labels = groups[0].template.node.metadata.labels
        assert (labels["team"], labels["agentpool"], labels["storagetier"]) == ("shop", "np1", "Premium_LRS")
        assert [(one.zone, one.share) for one in groups[0].offerings] == [
            ("westeurope-1", 0.5),
            ("westeurope-2", 0.5),
        ]
        assert groups[0].price_per_hour == pytest.approx(0.192)

    Azure(discovery="label:cluster=shop").with_groups().play(story)


def test_a_discovered_set_with_wrong_bounds_is_left_out_with_a_warning():
    """The others are managed, and the warning names the set and its tag, once."""

    async def story(here):
        here.fake.models["web"] = model("web", "")
        here.fake.models["web"]["tags"]["max"] = "many"
        cloud = here.connect()
        for _ in range(2):
            assert [one.id for one in await cloud.refresh()] == ["system"]
            await here.clock.sleep(minutes(2))
        assert here.warnings == [
            "scale set web is left out: invalid max size specified in tag max=many; correct its tags min and max"
        ]

    Azure(discovery="label:cluster=shop").with_groups().play(story)


def test_tags_that_cannot_be_read_are_warnings_of_their_set():
    """Each is named with its value; the others count."""
    tags = {
        f"{PREFIX}taint_dedicated": "shop",
        f"{PREFIX}taint_team": "shop:NoSchedule",
        f"{PREFIX}resources_example.com_disk": "10 GB",
        f"{PREFIX}resources_example.com_port": "2",
        f"{PREFIX}autoscaling-options_scaledownunneededtime": "soon",
        f"{PREFIX}autoscaling-options_maxnodeprovisiontime": "20m",
        f"{PREFIX}labels_team": "shop",
        f"{PREFIX}taint_zone": "a:NoSchedul",
    }

    async def story(here):
        here.fake.models["web"] = {**model("web", ""), "tags": tags}
        group = await group_in(here.connect(), "web")
        assert [one.partition(":")[0] for one in group.warnings] == [
            f"tag {PREFIX}autoscaling-options_maxnodeprovisiontime",
            f"tag {PREFIX}labels_team",
            f"tag {PREFIX}resources_example.com_disk",
            f"tag {PREFIX}taint_dedicated",
            f"tag {PREFIX}taint_zone",
            "option scaledownunneededtime",
        ]
        assert "no option maxnodeprovisiontime; use one of scaledown" in group.warnings[0]
        assert "goes one of label_, taint_" in group.warnings[1]
        assert "'shop' is not <value>:<effect>" in group.warnings[3]
        node = group.template.node
        assert [one.key for one in node.spec.taints] == ["team"]
        assert node.status.capacity["example.com/port"] == "2"

    Azure().with_groups().play(story)


def listed(**part):
    """Return the sets of an API whose only one, web, has this part."""

    async def send(_):
        return Response(200, {}, msgspec.json.encode({"value": [{"name": "web", **part}]}))

    clock = Clock()
    api = ComputeApi(Rest(send, clock, refusal), clock, None, Subscription("s", "g"))
    return asyncio.run(api.scale_sets())


def test_a_set_that_is_described_otherwise_is_an_error_of_the_cloud():
    """The error names the set, and is none of the program; what is null is as good as not there."""
    found, problems = listed(zones="1")
    assert (found, "answer on web cannot be read: " in problems["web"]) == ([], True)
    with pytest.raises(CloudError, match="an entry without name cannot be read"):
        listed(zones="1", name=None)
    assert listed(zones=None, properties=None).found == [ScaleSet(name="web")]


def test_a_set_without_a_size_says_so():
    """The error names the set."""
    with pytest.raises(CloudError, match="VMSS web has no SKU"):
        build_node(ScaleSet(name="web", location="westeurope"))


def test_each_spot_set_is_read_once_a_minute():
    """Its size changes by eviction, which the list shows late."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        await here.clock.sleep(minutes(1))
        here.fake.calls.clear()
        await cloud.refresh()
        await cloud.refresh()
        assert here.fake.calls == ["GET virtualMachineScaleSets", "GET system", "GET web"]

    Azure(page=500, spot=True).with_groups().play(story)


def test_spot_sets_are_read_as_often_as_configured():
    """Between two lists of sets, their sizes are read anew."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("web", 2)
        here.fleet.set_target("web", 1)
        await here.clock.sleep(seconds(31))
        here.fake.calls.clear()
        assert (await group_in(cloud, "web")).target_size == 1
        assert "GET virtualMachineScaleSets" not in here.fake.calls

    Azure(spot=True, spot_for=seconds(30)).with_groups().play(story)


@pytest.mark.parametrize(("status", "code"), [(404, "ResourceNotFound"), (403, "AuthorizationFailed")])
def test_a_spot_set_that_cannot_be_read_hides_no_other(status, code):
    """It stays as it was and says why; the others go on, also where one is unreadable from the start."""

    async def story(here):
        cloud = here.connect()
        before = await group_in(cloud, "web")
        here.fake.broken = {"web": (status, code)}
        await here.clock.sleep(minutes(2))
        groups = {one.id: one for one in await cloud.refresh()}
        assert not groups["system"].stale
        assert code in groups["web"].stale
        assert groups["web"].max_size == before.max_size
        groups = {one.id: one for one in await here.connect().refresh()}
        assert not groups["system"].stale
        assert (code in groups["web"].stale, groups["web"].max_size) == (True, 0)

    Azure(spot=True).with_groups().play(story)


def test_sizes_from_the_api():
    """The list of sizes is read from the API where that is asked for."""

    async def story(here):
        sizes = await here.connect()._api.skus("westeurope")
        size = sizes["standard_d4s_v3"]
        assert (size.vcpu, size.memory_mib, size.gpu, size.arch) == (4, 16384, 0, "amd64")

    Azure().with_groups().play(story)


def test_shipped_sizes_serve_for_what_the_api_does_not_list():
    """A size that the API leaves out or describes by half, or a list that cannot be read, is no obstacle."""

    async def story(here):
        cloud, warnings = here.connect(), []
        half = {"name": "Standard_D8s_v3", "resourceType": "virtualMachines"}
        here.fake.skus = [*here.fake.skus, half]
        sizes = await sizes_of(cloud._api, "westeurope", warnings.append)
        assert find_type("Standard_D2s_v3", sizes).vcpu == 2
        assert find_type("Standard_D8s_v3", sizes).vcpu == 8
        assert find_type("Standard_D4s_v3", sizes).usd_per_hour == find_type("Standard_D4s_v3").usd_per_hour
        assert warnings == []
        here.fake.refused = (403, "AuthorizationFailed")
        sizes = await sizes_of(cloud._api, "westeurope", warnings.append)
        assert find_type("Standard_D2s_v3", sizes).vcpu == 2
        (warning,) = warnings
        assert "AuthorizationFailed" in warning

    Azure().with_groups().play(story)


def test_a_set_is_like_its_pattern():
    """It has the pattern's profile with another size, in one zone, its own names, and the tags that are not of a machine."""

    async def story(here):
        made = await created_like_its_pattern(here)
        return made, here.fake.models[made.id]

    made, created = Azure().with_pattern().play(story)
    node = made.template.node
    assert node.metadata.labels["team"] == "shop"
    assert node.metadata.labels["topology.kubernetes.io/zone"] == "westeurope-2"
    assert not any("kubetide" in label for label in node.metadata.labels)
    assert [taint.key for taint in node.spec.taints] == ["dedicated"]
    assert (node.status.capacity["cpu"], node.status.capacity["ephemeral-storage"]) == ("16", "100Gi")
    assert created["sku"] == {"name": "Standard_D16s_v3", "tier": "Standard", "capacity": 0}
    assert created["zones"] == ["2"]
    assert created["identity"] == {
        "type": "UserAssigned",
        "userAssignedIdentities": {"/identities/nodes": {}},
    }
    tags = created["tags"]
    assert (tags["kubetide.dev_created-from"], tags["cluster"], tags["min"], tags["max"]) == (
        "workers",
        "shop",
        "0",
        "3",
    )
    assert not {"kubetide.dev_create", f"{PREFIX}resources_nvidia.com_gpu"} & tags.keys()
    expected = copy.deepcopy(model("workers", "")["properties"])
    del expected["zoneBalance"], expected["virtualMachineProfile"]["timeCreated"]
    del expected["virtualMachineProfile"]["storageProfile"]["imageReference"]["exactVersion"]
    [extension] = expected["virtualMachineProfile"]["extensionProfile"]["extensions"]
    del extension["id"], extension["properties"]["provisioningState"]
    expected["virtualMachineProfile"]["osProfile"]["computerNamePrefix"] = (
        "auto-workers-standard-d16s-v3-westeurope-2"
    )
    assert created["properties"] == expected


def test_patterns_are_read_when_they_change():
    """At rest a pattern costs nothing; once it has changed it is read again."""

    async def story(here):
        cloud = here.connect()
        reads = []
        for edits in (0, 0, 1):
            here.fake.calls.clear()
            here.fake.etag += edits
            await cloud.group_candidates()
            reads.append(here.fake.calls.count("GET workers"))
            await here.clock.sleep(minutes(1))
        assert reads == [1, 0, 1]

    Azure(page=500).with_pattern().play(story)


def test_a_pattern_that_cannot_be_read_says_so():
    """Its group is shown, with a warning that has the same words each time, and without candidates."""

    async def story(here):
        cloud = here.connect()
        answer = here.fake._answer

        def refusing(asked):
            if "$expand" in asked.query and asked.path.endswith("/workers"):
                return Answer({"error": {"code": "AuthorizationFailed", "message": "no. 17"}}, 403)
            return answer(asked)

        here.fake._answer = refusing
        [group] = await cloud.refresh()
        assert group.template is not None
        assert group.warnings == (
            "tag kubetide.dev_create: no group can be created like this one: it cannot be read: AuthorizationFailed",
        )
        assert await cloud.group_candidates() == ()

    Azure(page=500).with_pattern().play(story)
