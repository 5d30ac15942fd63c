"""What is Tencent Cloud's own where groups are created: launch configurations like those of the pattern."""

from __future__ import annotations

import pytest
from tests.clouds.creating import created_like_its_pattern
from tests.clouds.vendors import Tencent
from tests.clouds.vendors.tencent import TEMPLATE, tag
from tests.clouds.vendors.vendor import first_of, group_in

from kubetide.ports.errors import CloudError
from kubetide.units.time import minutes


def test_a_group_is_like_its_pattern():
    """It has a launch configuration with another type, one zone's subnet, and the tags that are not of a machine."""

    async def story(here):
        made = await created_like_its_pattern(here)
        group = here.fake.groups[here.created(made.id)]
        return made, group, here.fake.configurations[group["LaunchConfigurationId"]]

    made, group, configuration = Tencent().with_pattern().play(story)
    node = made.template.node
    assert node.metadata.labels["team"] == "shop"
    assert node.metadata.labels["topology.kubernetes.io/zone"] == "100004"
    assert (node.status.capacity["cpu"], node.status.capacity["ephemeral-storage"]) == ("16", "100Gi")
    assert "nvidia.com/gpu" not in node.status.capacity
    tags = [
        ("cluster", "shop"),
        (f"{TEMPLATE}label/team", "shop"),
        (f"{TEMPLATE}resources/ephemeral-storage", "100Gi"),
        ("kubetide.dev/created-from", "asg-workers"),
    ]
    assert [(one["Key"], one["Value"]) for one in group["Tags"]] == tags
    asked = {key: group[key] for key in group.keys() - {"Tags", "SubnetIdSet", "LaunchConfigurationId"}}
    assert asked == {
        "AutoScalingGroupName": Tencent.meant,
        "DefaultCooldown": 60,
        "DesiredCapacity": 0,
        "InstanceAllocationPolicy": "LAUNCH_CONFIGURATION",
        "MaxSize": 3,
        "MinSize": 0,
        "ProjectId": 0,
        "ServiceSettings": {"ReplaceMonitorUnhealthy": False},
        "SubnetIds": ["subnet-4"],
        "TerminationPolicies": ["NEWEST_INSTANCE"],
        "VpcId": "vpc-1",
    }
    assert configuration == {
        "CamRoleName": "nodes",
        "ImageId": "img-1",
        "InstanceChargeType": "POSTPAID_BY_HOUR",
        "InstanceType": "S5.4XLARGE32",
        "LaunchConfigurationName": Tencent.meant,
        "LoginSettings": {"KeyIds": ["skey-1"]},
        "ProjectId": 0,
        "SecurityGroupIds": ["sg-1"],
        "SystemDisk": {"DiskType": "CLOUD_BSSD", "DiskSize": 100},
        "Tags": [
            {
                "Key": "kubetide.dev/created-from",
                "Value": "asg-workers",
                "ResourceType": "launch-configuration",
            }
        ],
        "UserData": "am9pbg==",
    }


@pytest.mark.parametrize(
    ("login", "asked"),
    [
        ({"KeyIds": ["skey-1"], "Password": "", "KeepImageLogin": False}, {"KeyIds": ["skey-1"]}),
        ({"KeyIds": [], "KeepImageLogin": True}, {"KeepImageLogin": True}),
        ({"KeyIds": [], "KeepImageLogin": False}, None),
        (None, None),
    ],
)
def test_people_sign_in_as_to_the_patterns_machines(login, asked):
    """Key pairs and the image's own settings are copied, each without the other, which Tencent refuses together."""

    async def story(here):
        cloud = here.connect()
        made = await cloud.create_group(await first_of(cloud))
        return here.fake.configurations[here.fake.groups[here.created(made.id)]["LaunchConfigurationId"]]

    pattern = Tencent().with_pattern(configuration={"LoginSettings": login})
    assert pattern.play(story).get("LoginSettings") == asked


def test_orders_that_cannot_be_had_are_shown_and_withdrawn():
    """A stock-out of a group that was created is on stand-ins, which have its name, and can be deleted."""

    async def story(here):
        cloud = here.connect()
        made = await cloud.create_group(await first_of(cloud))
        asg = here.created(made.id)
        here.fleet.sold_out.add(asg)
        await cloud.increase_size(made.id, 1)
        await here.clock.sleep(minutes(1))
        [instance] = (await group_in(cloud, made.id)).instances
        assert instance.error.cause == "OutOfCapacity"
        await cloud.delete_nodes(made.id, [instance.provider_id])
        assert here.fleet.groups[asg].target == 0

    Tencent().with_pattern().play(story)


def test_a_configuration_that_was_left_behind_is_replaced():
    """One of the new group's name that this program made goes; somebody else's stays, and is an error."""

    async def story(here):
        cloud = here.connect()
        new = await first_of(cloud)
        left = {"LaunchConfigurationName": new.id, "InstanceType": "S5.LARGE8"}
        here.fake.configurations["asc-old"] = left
        with pytest.raises(CloudError, match="LaunchConfigurationNameDuplicated"):
            await cloud.create_group(new)
        left["Tags"] = [tag("kubetide.dev/created-from", "asg-workers")]
        await cloud.create_group(new)
        assert "asc-old" not in here.fake.configurations

    Tencent().with_pattern().play(story)
