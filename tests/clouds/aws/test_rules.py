"""Single rules of the AWS provider: tags, discovery, EKS, and what the newest activities mean."""

from __future__ import annotations

import pytest
from tests.clouds.aws.test_differences import group, play, provider_id

from kubetide.clouds.aws.discovery import DiscoveryError, parse_discovery
from kubetide.clouds.aws.nodegroups import read_nodegroup
from kubetide.clouds.aws.tags import OPTION, read_tags
from kubetide.units.time import after, minutes, seconds


def test_a_key_of_discovery_other_than_tag_is_refused():
    """The refusal says which one there is."""
    with pytest.raises(DiscoveryError) as refused:
        parse_discovery("asg:label=a")
    assert str(refused.value) == (
        'unsupported parameter key "label" is specified for discoverer "asg". The only supported key is "tag"'
    )


def test_the_prefix_of_an_option_stands_once():
    """A key that has it twice is no option, and neither is the bare prefix."""
    tags = ((f"{OPTION}a{OPTION}b", "1"), (OPTION, "2"), (f"{OPTION}c", "3"))
    assert read_tags(tags).options == {"c": "3"}


def test_empty_texts_of_eks_are_no_labels():
    """Only what EKS says becomes a label; a disk size of 0 is said."""
    raw = {"amiType": "", "capacityType": "", "version": "", "nodegroupName": "", "diskSize": 0}
    assert read_nodegroup(raw).labels == {"diskSize": "0"}


def test_a_group_without_zones_has_no_template():
    """That is said before anything about its instance type."""

    async def story(cloud, _aws, _clock):
        error = cloud.views()["a"].template_error
        assert error.startswith('unable to get first AvailabilityZone for ASG "a"')

    without = {**group("a", size=0), "AvailabilityZones": [], "LaunchConfigurationName": "gone"}
    play(story, without, explicit=[("a", 0, 9)])


def test_the_end_of_an_instance_does_not_outdate_failures():
    """A failed launch counts until a size is set: ending an instance sets none."""

    async def story(cloud, _aws, clock):
        await cloud.delete_nodes("a", [provider_id("i-1")])
        clock.time = after(clock.time, seconds(61))
        (known,) = await cloud.refresh()
        assert [one.error is not None for one in known.instances] == [False, True, True]

    failed = {"a": [{"status": "Failed", "offset_s": -3600}]}
    play(story, group("a", size=4, instances=("i-1", "i-2")), explicit=[("a", 0, 9)], activities=failed)


def test_a_failure_before_machines_were_given_up_is_not_one_of_machines_asked_for_since():
    """Giving up machines sets a size, too: an older failure says nothing of what somebody else asks for later."""

    async def story(cloud, aws, clock):
        owed = [one.provider_id for one in (await cloud.refresh())[0].instances if one.error]
        await cloud.delete_nodes("a", owed)
        aws.world["groups"][0]["DesiredCapacity"] = 3
        clock.time = after(clock.time, seconds(61))
        (known,) = await cloud.refresh()
        assert (len(owed), len(known.instances), known.instances[-1].error) == (2, 3, None)

    failed = {"a": [{"status": "Failed", "offset_s": -3600}]}
    play(story, group("a", size=4, instances=("i-1", "i-2")), explicit=[("a", 0, 9)], activities=failed)


def test_a_failure_while_aws_takes_the_order_counts():
    """A launch that begins and fails before AWS has answered is one of this order."""

    async def story(cloud, aws, clock):
        asked = aws.__call__

        async def slow(operation, parameters):
            answer = await asked(operation, parameters)
            if operation == "SetDesiredCapacity":
                clock.time = after(clock.time, seconds(20))
            return answer

        cloud._api._call = slow
        await cloud.increase_size("a", 1)
        clock.time = after(clock.time, minutes(2))
        (known,) = await cloud.refresh()
        assert known.instances[-1].error is not None

    failed = {"a": [{"status": "Failed", "offset_s": -130}]}
    play(story, group("a", size=1, instances=("i-1",)), explicit=[("a", 0, 9)], activities=failed)
