"""Managed instance groups of a region: named by their URL, with machines in several zones."""

from __future__ import annotations

import pytest
from tests.clouds.fakes.gce import PROJECT, REGION, ROOT, ZONE, ZONES
from tests.clouds.vendors import Gce
from tests.clouds.vendors.gce import template, template_url, url
from tests.clouds.vendors.vendor import group_in

from kubetide.clouds.gce.references import GceRef, group_id, parse_group_url
from kubetide.clouds.group_flags import group_problems
from kubetide.units.time import minutes

WEB = url("web", f"regions/{REGION}")


def test_its_url_is_what_nodes_takes():
    """The id is the URL, whatever its host; a manager's URL is refused as that of a zone is."""
    ref = parse_group_url(WEB.replace("www.googleapis.com", "compute.googleapis.com"))
    assert ref == GceRef(PROJECT, REGION, "web", is_regional=True)
    assert group_id(ref) == WEB
    assert not list(group_problems("gce", [f"0:3:{WEB}"], ()))
    assert list(group_problems("gce", [f"0:3:{WEB.replace('Groups', 'GroupManagers')}"], ()))


def test_its_next_node_may_come_in_each_of_its_zones():
    """The template is of the first zone by name, and each zone is an offer."""

    async def story(here):
        group = await group_in(here.connect(), WEB)
        labels = group.template.node.metadata.labels
        assert labels["topology.kubernetes.io/zone"] == ZONE
        assert labels["topology.kubernetes.io/region"] == REGION
        assert [one.zone for one in group.offerings] == list(ZONES)
        assert group.price_per_hour is not None
        assert group.warnings is None

    Gce(regional=True).with_groups().play(story)


def test_machines_of_all_zones_are_its_own():
    """A node of any of its zones belongs to it, also one that no list has shown yet; a foreign region's does not."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size(WEB, 3)
        await here.clock.sleep(minutes(1))
        group = await group_in(cloud, WEB)
        zones = {one.provider_id.split("/")[3] for one in group.instances}
        assert zones == set(ZONES)
        fresh = here.connect()
        for one in group.instances:
            assert await fresh.group_of(one.provider_id) == WEB
        for foreign in ("europe-west1-b", "nowhere"):
            assert await fresh.group_of(f"gce://{PROJECT}/{foreign}/web-1") is None

    Gce(regional=True).with_groups().play(story)


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({"updatePolicy": {"instanceRedistributionType": "PROACTIVE"}}, True),
        ({"updatePolicy": None}, True),
        ({"updatePolicy": {"instanceRedistributionType": "NONE"}}, False),
    ],
)
def test_a_group_that_moves_its_machines_is_warned_of(changes, warned):
    """To have as many in each zone Compute Engine ends machines with pods; without a word it does."""

    async def story(here):
        here.fake.managers["web"] = changes
        warnings = (await group_in(here.connect(), WEB)).warnings or ()
        assert [one for one in warnings if "instance redistribution" in one and "NONE" in one] == list(
            warnings
        )
        assert bool(warnings) == warned

    Gce(regional=True).with_groups().play(story)


def test_without_zones_there_is_no_template():
    """The group is shown all the same, and says why."""

    async def story(here):
        here.fake.managers["web"] = {"distributionPolicy": None}
        group = await group_in(here.connect(), WEB)
        assert group.template is None
        assert "zones" in group.template_error
        assert group.max_size == 3

    Gce(regional=True).with_groups().play(story)


def test_its_autoscalers_are_named():
    """An autoscaler of the region, whose target is the group's manager."""

    async def story(here):
        target = f"{ROOT}/projects/{PROJECT}/regions/{REGION}/instanceGroupManagers/web"
        here.fake.autoscalers = [{"name": "mine", "target": target}]
        assert await here.connect().scaling_policies() == {WEB: ("autoscaler mine (mode ON)",)}

    Gce(regional=True).with_groups().play(story)


def test_it_is_no_pattern():
    """Groups that are created are of one zone; the mark on a regional one is a warning."""

    async def story(here):
        here.fake.templates["workers-v1"] = template("e2-standard-16")
        here.fake.managers["web"] = {"instanceTemplate": template_url("workers-v1")}
        cloud = here.connect()
        assert await cloud.group_candidates() == ()
        (warning,) = (await group_in(cloud, WEB)).warnings
        assert "it is regional" in warning

    Gce(regional=True).with_groups().play(story)


def test_with_bulk_listing_it_is_asked_by_itself():
    """A zone's list shows a part of its machines only."""

    async def story(here):
        cloud = here.connect()
        assert (await group_in(cloud, WEB)).target_size == 0
        assert not [call for call in here.fake.calls if call == "GET instances"]

    Gce(regional=True, bulk=True).with_groups().play(story)
