"""What is Alibaba Cloud's own in its provider: configurations, total capacities, removals one by one."""

from __future__ import annotations

import json

import pytest
from tests.clouds.creating import created_like_its_pattern
from tests.clouds.fakes.alibaba import REGION
from tests.clouds.removing import a_removal_that_comes_to_nothing_is_asked_for_again
from tests.clouds.vendors import Alibaba
from tests.clouds.vendors.vendor import first_of, group_in

from kubetide.clouds.alibaba.endpoints import MACHINES, NETWORKS, SCALING, host_of
from kubetide.ports.errors import CloudError
from kubetide.units.time import hours, milliseconds, minutes


def test_a_refused_removal_is_named_and_the_others_go():
    """Each machine is removed by itself; those that the cloud keeps are in the error."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("asg-web", 3)
        await here.clock.sleep(minutes(1))
        group = await group_in(cloud, "asg-web")
        here.fake.errors = [("RemoveInstances", "IncorrectScalingGroupStatus", 400)]
        ids = [one.provider_id for one in group.instances]
        before = here.clock.now()
        with pytest.raises(CloudError, match="1 of 2 instances of asg-web were not removed"):
            await cloud.delete_nodes("asg-web", ids[:2])
        assert here.clock.now() - before == milliseconds(200), "a pause between the calls"
        assert here.fleet.groups["asg-web"].target == 2

    Alibaba().with_groups().play(story)


def test_a_removal_without_an_answer_is_told_beside_those_that_went():
    """Nobody knows whether that one is removed, as its error says."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("asg-web", 3)
        await here.clock.sleep(minutes(1))
        ids = [one.provider_id for one in (await group_in(cloud, "asg-web")).instances]
        here.fake.answers["RemoveInstances"] = None
        with pytest.raises(CloudError, match="2 of 2 instances of asg-web were not removed") as caught:
            await cloud.delete_nodes("asg-web", ids[:2])
        assert caught.value.may_be_done

    Alibaba().with_groups().play(story)


@pytest.mark.parametrize("answer", [None, []])
def test_a_change_whose_answer_cannot_be_read_is_an_error_of_the_cloud(answer):
    """Nobody knows whether it was made; the next refresh tells."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fake.answers["ScaleWithAdjustment"] = answer
        with pytest.raises(CloudError, match="ess:ScaleWithAdjustment: the answer cannot be read"):
            await cloud.increase_size("asg-web", 1)

    Alibaba().with_groups().play(story)


def test_a_decrease_by_nothing_is_refused_in_the_words_of_upstream():
    """Nothing is asked for."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fake.calls.clear()
        with pytest.raises(CloudError, match=r"^size decrease size must be negative$"):
            await cloud.decrease_target_size("asg-web", 0)
        assert list(here.fake.calls) == []

    Alibaba().with_groups().play(story)


def test_the_first_node_that_is_not_of_the_group_is_named():
    """Nodes are checked in their order."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size("asg-web", 2)
        for ids, text in (
            ([f"{REGION}.i-none", "bogus"], "doesn't belong to a known Asg"),
            (["bogus", f"{REGION}.i-none"], "unexpected ProviderID format"),
        ):
            with pytest.raises(CloudError, match=text):
                await cloud.delete_nodes("asg-web", ids)

    Alibaba().with_groups().play(story)


def test_a_removal_that_comes_to_nothing_can_be_asked_for_again():
    """A machine that is still there after a quarter of an hour is not going: the next deletion is sent."""

    Alibaba().with_groups().play(
        a_removal_that_comes_to_nothing_is_asked_for_again, {"ScalingActivityId": "asa-1"}
    )


@pytest.mark.parametrize("desired", [True, False])
def test_a_size_that_the_api_does_not_say_is_not_zero(desired):
    """An increase by one would set the capacity to one, and end the other machines."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        group = {"ScalingGroupId": "asg-web", "EnableDesiredCapacity": desired}
        here.fake.answers["DescribeScalingGroups"] = {"ScalingGroups": {"ScalingGroup": [group]}}
        _, web = await cloud.refresh()
        assert web.stale == "Alibaba Cloud does not say the capacity of scaling group asg-web"
        with pytest.raises(CloudError, match="does not say the capacity"):
            await cloud.increase_size("asg-web", 1)

    Alibaba().with_groups().play(story)


def test_a_null_is_what_the_api_does_not_say():
    """One in one type of machine or one group does not spoil the lists of all."""

    async def story(here):
        here.fake.types.append({"InstanceTypeId": "ecs.new", "CpuCoreCount": None, "MemorySize": None})
        here.fake.groups["asg-web"] = {"ScalingGroupName": None, "GroupType": None}
        assert [(one.stale, one.template_error) for one in await here.connect().refresh()] == [("", "")] * 2

    Alibaba().with_groups().play(story)


def test_templates():
    """A template has the configuration's tags as labels."""

    async def story(here):
        group = (await here.connect().refresh())[0]
        node = group.template.node
        assert node.metadata.labels["team"] == "shop"
        assert node.status.capacity["memory"] == str(8 << 30)
        assert [(one.instance_type, one.market) for one in group.offerings] == [("ecs.g6.large", "spot")]

    Alibaba().with_groups().play(story)


def test_kube_proxy_is_on_each_new_node():
    """As upstream has it: what fits a new node leaves 100m of CPU for it, also in a group that could be created."""

    async def story(here):
        cloud = here.connect()
        (group,) = await cloud.refresh()
        candidate = (await cloud.group_candidates())[0].group
        return [one.template.pods for one in (group, candidate)]

    for (pod,) in Alibaba().with_pattern().play(story):
        assert pod.metadata.name.startswith("kube-proxy-")
        assert pod.spec.containers[0].resources.requests == {"cpu": "100m"}


def test_a_new_type_of_machine_is_known_within_ten_minutes():
    """All types are read once a day, and earlier for one that is not among them."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        here.fake.configurations["asc-asg-system"] = {"InstanceType": "ecs.g9.large"}
        here.fake.types.append({"InstanceTypeId": "ecs.g9.large", "CpuCoreCount": 2, "MemorySize": 8.0})
        await here.clock.sleep(minutes(10))
        here.fake.calls.clear()
        system, _ = await cloud.refresh()
        assert (system.template_error, system.template.node.status.capacity["cpu"]) == ("", "2")
        await here.clock.sleep(minutes(10))
        await cloud.refresh()
        assert here.fake.calls.count("DescribeInstanceTypes") == 2, "one list of two pages"

    Alibaba().with_groups().play(story)


@pytest.mark.parametrize("action", ["DescribeInstanceTypes", "DescribeScalingConfigurations"])
def test_templates_stay_while_their_parts_cannot_be_read_again(action):
    """A refused call leaves the last types and configurations in force; in one refresh it is not asked again for each group."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        await here.clock.sleep(hours(25))
        here.fake.errors = [(action, "Forbidden.RAM", 403)] * 2
        here.fake.calls.clear()
        assert [one.template_error for one in await cloud.refresh()] == ["", ""]
        assert here.fake.calls.count(action) == 2 - (action == "DescribeInstanceTypes")

    Alibaba().with_groups().play(story)


def test_types_that_cannot_be_read_are_asked_for_once_a_refresh():
    """They are the same for all groups; a throttled start does not ask for them group by group."""

    async def story(here):
        cloud = here.connect()
        here.fake.errors = [("DescribeInstanceTypes", "Forbidden.RAM", 403)]
        assert ["Forbidden.RAM" in one.template_error for one in await cloud.refresh()] == [True, True]
        assert [one.template_error for one in await cloud.refresh()] == ["", ""]

    Alibaba().with_groups().play(story)


def test_a_group_that_does_not_exist_ends_the_start():
    """All named groups must exist at the start."""

    async def story(here):
        with pytest.raises(CloudError, match="asg-none"):
            await here.connect().refresh()

    Alibaba().with_groups(("asg-none", 0, 3)).play(story)


def test_a_group_is_like_its_pattern():
    """It has a configuration with another type, one zone's vSwitch, and the pattern's disks, keys and balancers."""

    async def story(here):
        made = await created_like_its_pattern(here)
        asg = here.created(made.id)
        assert here.fake.groups[asg]["LifecycleState"] == "Active"
        own = here.fake.groups[asg]["ActiveScalingConfigurationId"]
        return made, here.fake.created[asg], here.fake.created[own], asg

    made, group, configuration, asg = Alibaba().with_pattern().play(story)
    labels = made.template.node.metadata.labels
    assert (labels["team"], labels["topology.kubernetes.io/zone"]) == ("shop", f"{REGION}-i")
    assert not any("kubetide" in label for label in labels)
    assert [one.zone for one in made.offerings] == [f"{REGION}-i"]
    assert group == {
        "ScalingGroupName": Alibaba.meant,
        "MinSize": "0",
        "MaxSize": "3",
        "DesiredCapacity": "0",
        "DefaultCooldown": "0",
        "HealthCheckType": "ECS",
        "MultiAZPolicy": "BALANCE",
        "ScalingPolicy": "release",
        "RemovalPolicy.1": "NewestInstance",
        "LoadBalancerIds": '["lb-1"]',
        "VServerGroup.1.LoadBalancerId": "lb-2",
        "VServerGroup.1.VServerGroupAttribute.1.VServerGroupId": "rsp-1",
        "VServerGroup.1.VServerGroupAttribute.1.Port": "80",
        "VServerGroup.1.VServerGroupAttribute.1.Weight": "100",
        "VSwitchIds.1": "vsw-i",
        "Tag.1.Key": "kubetide.dev/created-from",
        "Tag.1.Value": "asg-workers",
        "Tag.1.Propagate": "false",
    }
    assert json.loads(configuration.pop("Tags")) == {
        "team": "shop",
        "kubetide.dev/created-from": "asg-workers",
    }
    assert configuration == {
        "ScalingGroupId": asg,
        "ScalingConfigurationName": Alibaba.meant,
        "InstanceType": "ecs.g6.4xlarge",
        "ImageId": "img-1",
        "InternetMaxBandwidthOut": "0",
        "KeyPairName": "shop",
        "LoadBalancerWeight": "50",
        "SecurityGroupId": "sg-1",
        "SpotStrategy": "NoSpot",
        "SystemDisk.Category": "cloud_essd",
        "SystemDisk.Size": "120",
        "DataDisk.1.Size": "200",
        "DataDisk.1.Category": "cloud_essd",
        "DataDisk.1.DeleteWithInstance": "true",
        "UserData": "am9pbg==",
    }


def test_a_group_that_was_left_half_made_is_found_and_goes():
    """A process that ends before it gives a group its configuration leaves one that a later process deletes when empty."""

    async def story(here):
        cloud = here.connect()
        made = await cloud.create_group(await first_of(cloud))
        asg = here.created(made.id)
        here.fake.groups[asg] |= {"ActiveScalingConfigurationId": "", "LifecycleState": "Inactive"}
        later = here.connect()
        group = await group_in(later, made.id)
        assert (group.autoprovisioned, group.target_size, group.instances, group.stale) == (True, 0, (), "")
        assert (group.template, bool(group.template_error)) == (None, True)
        with pytest.raises(CloudError, match="of this name already"):
            await later.create_group(await first_of(later))
        await later.delete_group(made.id)
        assert asg not in here.fleet.groups

    Alibaba().with_pattern().play(story)


def test_disks_of_several_categories_keep_them_all():
    """Alibaba takes the first category that is to be had; one beside them would be refused."""
    disk = {"Size": 200, "Category": "cloud_essd", "Categories": {"Category": ["cloud_auto", "cloud_essd"]}}
    pattern = Alibaba().with_pattern(configuration={"DataDisks": {"DataDisk": [{"Size": 40}, disk]}})

    async def story(here):
        cloud = here.connect()
        made = await cloud.create_group(await first_of(cloud))
        return here.fake.created[here.fake.groups[here.created(made.id)]["ActiveScalingConfigurationId"]]

    query = pattern.play(story)
    assert {key: value for key, value in query.items() if key.startswith("DataDisk")} == {
        "DataDisk.1.Size": "40",
        "DataDisk.2.Size": "200",
        "DataDisk.2.Categories.1": "cloud_auto",
        "DataDisk.2.Categories.2": "cloud_essd",
    }


def test_vswitches_that_cannot_be_read_leave_the_group_alone():
    """It is shown with a warning and nothing can be created; once they can be read both are over."""

    async def story(here):
        cloud = here.connect()
        here.fake.errors = [("DescribeVSwitches", "Forbidden.RAM", 403)] * 2
        [group] = await cloud.refresh()
        assert not here.fake.errors
        assert group.warnings == (
            "no group can be created like this one: its vSwitches cannot be read: Forbidden.RAM",
        )
        assert await cloud.group_candidates() == ()
        [group] = await cloud.refresh()
        assert group.warnings is None
        assert tuple(one.new.id for one in await cloud.group_candidates()) == here.candidates

    Alibaba().with_pattern().play(story)


def test_each_region_is_asked_at_its_own_host():
    """The oldest regions share the host of scaling groups; there is none with their names."""
    assert host_of(SCALING, "cn-hangzhou") == host_of(SCALING, "cn-shanghai") == "ess.aliyuncs.com"
    assert host_of(SCALING, "eu-central-1") == "ess.eu-central-1.aliyuncs.com"
    assert host_of(MACHINES, "cn-hangzhou") == "ecs.cn-hangzhou.aliyuncs.com"
    assert host_of(NETWORKS, "cn-hangzhou") == "vpc.cn-hangzhou.aliyuncs.com"
