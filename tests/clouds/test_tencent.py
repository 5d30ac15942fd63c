"""What is Tencent Cloud's own in its provider: launch configurations, numbered zones, the vendor's models."""

from __future__ import annotations

import pytest
from tests.clouds.removing import a_removal_that_comes_to_nothing_is_asked_for_again
from tests.clouds.vendors import Tencent
from tests.clouds.vendors.tencent import tag
from tests.clouds.vendors.vendor import first_of

from kubetide.clouds.common.rest import Response
from kubetide.clouds.tencent.api import refusal
from kubetide.clouds.tencent.model import Tag
from kubetide.clouds.tencent.template import PREFIX, labels, taints
from kubetide.ports.errors import CloudError
from kubetide.units.time import minutes


def test_one_group_that_is_gone_does_not_hide_the_others():
    """A group that vanished stays as it was and says why."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fleet.groups["asg-other"] = here.fleet.groups.pop("asg-system")
        here.fake.errors = [("DescribeAutoScalingInstances", "ResourceNotFound.AutoScalingGroupNotFound")]
        system, web = await cloud.refresh()
        assert "asg-system" in system.stale
        assert (web.id, web.stale) == ("asg-web", "")

    Tencent().with_groups().play(story)


@pytest.mark.parametrize("body", [b"{}", b"null", b"[]", b'{"Response": null}', b"<html>", b""])
def test_an_answer_that_is_not_the_apis_is_a_refusal(body):
    """A change that such an answer follows was not taken on."""
    assert "HTTP 200" in str(refusal(Response(200, {}, body)))


def test_an_answer_of_a_gateway_is_a_refusal():
    """The API itself always answers 200; another status is no empty list, and is asked for again."""
    found = refusal(Response(502, {}, b'{"Response": {}}'))
    assert found.error_code == "502"
    assert refusal(Response(200, {}, b'{"Response": {}}')) is None


def test_what_the_api_does_not_say_of_one_group_is_that_groups():
    """Tencent Cloud has null for it. Without a size the group says so; without a configuration it has no template."""

    async def story(here):
        cloud = here.connect()
        web = {"AutoScalingGroupId": "asg-web", "DesiredCapacity": None, "LaunchConfigurationId": None}
        system = {**web, "AutoScalingGroupId": "asg-system", "DesiredCapacity": 1}
        system |= {"LaunchConfigurationId": "asc-system", "SubnetIdSet": ["subnet-1"], "Tags": None}
        listed = {"TotalCount": 2, "AutoScalingGroupSet": [web, system]}
        here.fake.answers["DescribeAutoScalingGroups"] = listed
        system, web = await cloud.refresh()
        assert (system.stale, system.target_size, system.template is None) == ("", 1, False)
        assert web.stale.startswith("asg-web invalid desired capacity")
        with pytest.raises(CloudError, match="invalid desired capacity"):
            await cloud.increase_size("asg-web", 1)

    Tencent().with_groups().play(story)


def test_tags_that_say_nothing_are_warnings_of_their_group():
    """Each is named with what is wrong and what to write; the others count."""
    tags = {
        "taint/dedicated": "shop",
        "taint/team": "shop:NoSchedule",
        "resources/example.com/disk": "10 GB",
        "autoscaling-options/scaledownunneededtime": "3m",
        "labels/team": "shop",
    }

    async def story(here):
        here.fake.groups["asg-web"] = {"Tags": [tag(f"{PREFIX}{key}", value) for key, value in tags.items()]}
        system, web = await here.connect().refresh()
        assert system.warnings is None
        assert [one.removeprefix(f"tag {PREFIX}").partition(":")[0] for one in web.warnings] == [
            "taint/dedicated",
            "resources/example.com/disk",
            "autoscaling-options/scaledownunneededtime",
            "labels/team",
        ]
        assert "'shop' is not <value>:<effect>" in web.warnings[0]
        assert web.warnings[2].endswith("none is read of this cloud's tags")
        assert [one.key for one in web.template.node.spec.taints] == ["team"]

    Tencent().with_groups().play(story)


def test_a_machine_without_zone_is_not_there_yet():
    """Auto Scaling is still looking for its place; the others of its group are shown."""

    async def story(here):
        known = {"InstanceId": "ins-a", "LifeCycleState": "IN_SERVICE", "Zone": "ap-guangzhou-3"}
        new = {"InstanceId": "ins-b", "LifeCycleState": "CREATING", "Zone": None}
        listed = [known, new, {"InstanceId": None}]
        here.fake.answers["DescribeAutoScalingInstances"] = {
            "TotalCount": 3,
            "AutoScalingInstanceSet": listed,
        }
        system, _ = await here.connect().refresh()
        assert (system.stale, [one.provider_id for one in system.instances]) == (
            "",
            ["qcloud:///100003/ins-a"],
        )

    Tencent().with_groups().play(story)


def test_a_zone_that_opens_later_is_known_within_ten_minutes():
    """Its machines are out of sight until its number is known; the list of zones is read again for them."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        new = {"InstanceId": "ins-a", "LifeCycleState": "IN_SERVICE", "Zone": "ap-guangzhou-7"}
        here.fake.answers["DescribeAutoScalingInstances"] = {
            "TotalCount": 1,
            "AutoScalingInstanceSet": [new],
        }
        zones = [
            {"Zone": "ap-guangzhou-3", "ZoneId": "100003"},
            {"Zone": "ap-guangzhou-7", "ZoneId": "100007"},
        ]
        here.fake.answers["DescribeZones"] = {"TotalCount": 2, "ZoneSet": zones}
        assert (await cloud.refresh())[0].instances == ()
        await here.clock.sleep(minutes(10))
        here.fake.calls.clear()
        system, _ = await cloud.refresh()
        assert [one.provider_id for one in system.instances] == ["qcloud:///100007/ins-a"]
        await cloud.refresh()
        assert here.fake.calls.count("DescribeZones") == 1

    Tencent().with_groups().play(story)


def test_no_zones_take_no_machines_away():
    """Provider ids cannot be made without them, so the group says so."""

    async def story(here):
        here.fake.answers["DescribeZones"] = {"TotalCount": 0, "ZoneSet": []}
        system, _ = await here.connect().refresh()
        assert "returned no zone of ap-guangzhou" in system.stale

    Tencent().with_groups().play(story)


def test_nobody_is_said_to_be_a_stranger_while_a_list_is_missing():
    """Whose machine it is cannot be said when the list of a group cannot be read, and that is the error."""

    async def story(here):
        cloud = here.connect()
        system, _ = await cloud.refresh()
        [machine] = (one.provider_id for one in system.instances)
        await cloud.increase_size("asg-web", 1)
        await cloud.renew()
        here.fake.errors = [("DescribeAutoScalingInstances", "UnauthorizedOperation")]
        with pytest.raises(CloudError, match="Code=UnauthorizedOperation"):
            await cloud.delete_nodes("asg-web", ["qcloud:///100003/ins-none"])
        assert await cloud.group_of("qcloud:///100003/ins-none") is None
        await cloud.renew()
        assert await cloud.group_of(machine) == "asg-system"

    Tencent().with_groups().play(story)


def test_a_template_stays_while_its_parts_cannot_be_read_again():
    """Launch configurations are read every ten minutes; a throttled or refused call leaves the last ones in force."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        await here.clock.sleep(minutes(11))
        here.fake.errors = [("DescribeLaunchConfigurations", "UnauthorizedOperation")]
        here.fake.calls.clear()
        system, web = await cloud.refresh()
        assert (system.template_error, web.template_error) == ("", "")
        assert here.fake.calls.count("DescribeLaunchConfigurations") == 1
        await here.clock.sleep(minutes(1))
        await cloud.refresh()
        assert here.fake.calls.count("DescribeLaunchConfigurations") == 2

    Tencent().with_groups().play(story)


@pytest.mark.parametrize(
    ("errors", "text"),
    [
        ([("DescribeInstanceTypeConfigs", "UnauthorizedOperation")] * 2, "Code=UnauthorizedOperation"),
        ([], "there is no instance type S9.HUGE in ap-guangzhou"),
    ],
)
def test_a_missing_template_says_why(errors, text):
    """Of the type of machine, which upstream only logs."""

    async def story(here):
        here.fake.configurations["asc-asg-web"] = {"InstanceType": "S9.HUGE"}
        here.fake.configurations["asc-asg-system"] = {"InstanceType": "S9.HUGE"}
        here.fake.errors = errors
        system, _ = await here.connect().refresh()
        assert text in system.template_error

    Tencent().with_groups().play(story)


def test_a_removal_that_comes_to_nothing_can_be_asked_for_again():
    """A machine that is still there after a quarter of an hour is not going: the next deletion is sent."""

    Tencent().with_groups().play(a_removal_that_comes_to_nothing_is_asked_for_again, {"ActivityId": "asa-1"})


def test_templates():
    """A template has the tags' labels and the zone's number."""

    async def story(here):
        group = (await here.connect().refresh())[0]
        labels = group.template.node.metadata.labels
        assert (labels["team"], labels["topology.kubernetes.io/zone"]) == ("shop", "100003")
        assert [(one.instance_type, one.market) for one in group.offerings] == [("S5.LARGE8", "spot")]

    Tencent().with_groups().play(story)


def test_the_last_tag_gives_a_label():
    """Whichever of the two kinds it is of; a tag of the one kind is none of the other."""
    label = f"{PREFIX}label/"
    tags = (Tag(key="tencentcloud:team", value="a"), Tag(key=f"{label}team", value="b"))
    assert labels(tags) == {"team": "b"}
    assert labels(tags[::-1]) == {"team": "a"}
    assert labels((Tag(key=f"{label}tencentcloud:owner", value="c"),)) == {"tencentcloud:owner": "c"}
    assert [one.key for one in taints((Tag(key=f"{PREFIX}taint/", value="v:NoExecute"),))] == [""]


def test_the_first_node_that_is_not_of_the_group_is_named():
    """Nodes are checked in their order; one without a provider id is of no group."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("asg-web", 2)
        assert await cloud.group_of("") is None
        for ids, text in (
            ([""], "belongs to a different asg"),
            (["qcloud:///100003/ins-none", "bogus"], "doesn't belong to a known asg"),
            (["bogus", "qcloud:///100003/ins-none"], "valid provider id"),
        ):
            with pytest.raises(CloudError, match=text):
                await cloud.delete_nodes("asg-web", ids)

    Tencent().with_groups().play(story)


def test_groups_that_do_not_exist_end_the_start():
    """When none of the named groups exists, the start fails and names them."""

    async def story(here):
        with pytest.raises(CloudError, match="asg-none"):
            await here.connect().refresh()

    Tencent().named(("asg-none", 0, 3)).play(story)


def test_requests_fit_the_vendors_models():
    """What is asked for are parts of the vendor's own models, all the way down."""
    reason = "the SDK serves as an oracle only"
    models = pytest.importorskip("tencentcloud.autoscaling.v20180419.models", reason=reason)

    async def create(here):
        cloud = here.connect()
        await cloud.delete_group((await cloud.create_group(await first_of(cloud))).id)
        return here.fake.bodies

    async def scale(here):
        cloud = here.connect()
        here.fleet.sold_out.add("asg-web")
        await cloud.increase_size("asg-web", 1)
        await here.clock.sleep(minutes(1))
        system, _ = await cloud.refresh()
        await cloud.increase_size("asg-system", 1)
        await here.clock.sleep(minutes(1))
        await cloud.refresh()
        await cloud.delete_nodes("asg-system", [system.instances[0].provider_id])
        return here.fake.bodies

    bodies = Tencent().with_pattern().play(create) + Tencent(page=100).with_groups().play(scale)
    asked = [(action, body) for service, action, body in bodies if service == "as"]
    assert {action for action, _ in asked} >= {
        "CreateLaunchConfiguration",
        "CreateAutoScalingGroup",
        "DescribeAutoScalingActivities",
        "RemoveInstances",
        "ModifyAutoScalingGroup",
    }
    for action, body in asked:
        # The model warns of each part that it does not have, and a warning is an error.
        getattr(models, f"{action}Request")()._deserialize(body)
