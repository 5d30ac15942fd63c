"""Single rules of the AWS provider: tags, discovery, EKS, and what the newest activities mean."""

from __future__ import annotations

import pytest
from tests.clouds.aws.test_differences import group, play

from kubetide.clouds.aws.discovery import DiscoveryError, parse_discovery
from kubetide.clouds.aws.nodegroups import read_nodegroup
from kubetide.clouds.aws.tags import OPTION, read_tags


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
