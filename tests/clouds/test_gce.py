"""What is Compute Engine's own in its provider: operations, attempts, templates, discovery by names."""

from __future__ import annotations

import pytest
from tests.clouds.creating import created_like_its_pattern
from tests.clouds.fakes.gce import KUBE_ENV, PROJECT, ZONE
from tests.clouds.vendors import Gce
from tests.clouds.vendors.gce import LARGE, template, url
from tests.clouds.vendors.vendor import first_of, group_in

from kubetide.clouds.common.rest import NoAnswer
from kubetide.ports.errors import CloudError
from kubetide.units.time import minutes, seconds

WEB = url("web")


def test_what_cannot_be_read_is_shown_as_it_was():
    """Without rights to list, groups stay as they were and say why."""

    async def story(here):
        cloud = here.connect()
        before = await cloud.refresh()
        here.fake.errors = [(403, "forbidden")] * 9
        after = await cloud.refresh()
        assert [one.target_size for one in after] == [one.target_size for one in before]
        assert all("403" in one.stale for one in after)

    Gce().with_groups().play(story)


def test_a_failed_operation_fails_the_increase_with_its_cause():
    """An operation that ends in an error of quota is an increase refused for quota, ordered once."""

    async def story(here):
        here.fake.failed_operation = {"errors": [{"code": "QUOTA_EXCEEDED", "message": "CPUS"}]}
        with pytest.raises(CloudError, match="QUOTA_EXCEEDED") as found:
            await here.connect().increase_size(WEB, 2)
        assert (found.value.cause, found.value.error_class) == ("Quota", "OutOfResource")
        assert here.fake.calls.count("POST createInstances") == 1

    Gce().with_groups().play(story)


def test_a_decrease_leaves_suspended_machines_out():
    """A resize sets how many run: with suspended ones counted in, as upstream sends it, a decrease could be an increase."""

    async def story(here):
        here.fleet.sold_out.add("web")
        here.fleet.add("more", running=3)
        here.fleet.groups["web"].machines = here.fleet.groups["more"].machines
        here.fleet.groups["web"].target = 3
        here.fake.managers["web"] = {"targetSuspendedSize": 2}
        cloud = here.connect()
        group = await group_in(cloud, WEB)
        assert (group.target_size, len(group.instances)) == (5, 3), (
            "one runs, two are suspended, and two are owed"
        )
        with pytest.raises(CloudError, match="attempt to delete existing nodes"):
            await cloud.decrease_target_size(WEB, 3)
        await cloud.decrease_target_size(WEB, 2)
        assert here.fleet.groups["web"].target == 1

    Gce().with_groups().play(story)


def test_machines_that_are_to_be_suspended_and_are_not_there_cannot_be_withdrawn():
    """The size of those that run is 0 already."""

    async def story(here):
        here.fake.managers["web"] = {"targetSuspendedSize": 2}
        with pytest.raises(CloudError, match="2 of web are to be suspended, not 1"):
            await here.connect().decrease_target_size(WEB, 1)
        assert "POST resize" not in here.fake.calls

    Gce().with_groups().play(story)


def test_an_increase_of_a_group_that_does_not_exist_has_upstreams_type():
    """Upstream's client gives the refusal of this one question a type; that of the order itself has none."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        del here.fleet.groups["web"]
        with pytest.raises(CloudError, match="404") as ordered:
            await cloud.increase_size(WEB, 1)
        assert ordered.value.error_type == "cloudProviderError"
        with pytest.raises(CloudError, match="404") as asked:
            await cloud.increase_size(WEB, 1)
        assert asked.value.error_type == "nodeGroupDoesNotExistError"

    Gce().with_groups().play(story)


def hang(here, waits):
    """Let the API hold that many waits for an operation for longer than a connection is kept open."""
    send, left = here.send, iter(range(waits))

    async def hanging(request):
        if request.url.endswith("/wait") and next(left, None) is not None:
            await here.clock.sleep(seconds(30))
            raise NoAnswer(request.url, "TimeoutError")
        return await send(request)

    here.send = hanging


def test_an_operation_that_is_waited_for_longer_than_a_connection_lasts_is_asked_about_again():
    """The API holds the answer for up to two minutes; a group has as long to be created."""

    async def story(here):
        hang(here, 2)
        cloud = here.connect()
        return (await cloud.create_group(await first_of(cloud))).id

    assert Gce().with_pattern().play(story) == url(LARGE)


def test_an_increase_that_takes_too_long_says_so():
    """The error names the group and the operation, whatever became of the connection."""

    async def story(here):
        hang(here, 9)
        with pytest.raises(
            CloudError, match=r"createInstances of shop/.*/web: operation .* is not done after 20 s"
        ):
            await here.connect().increase_size(WEB, 1)

    Gce().with_groups().play(story)


def test_a_stock_out_is_on_the_instance():
    """Instances that cannot be made say so, with class, code and cause."""

    async def story(here):
        cloud = here.connect()
        here.fake.attempts["web"] = [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "none left"}]
        await cloud.increase_size(WEB, 1)
        await here.clock.sleep(minutes(1))
        (error,) = (one.error for one in (await group_in(cloud, WEB)).instances)
        assert (error.error_class, error.error_code) == ("OutOfResource", "RESOURCE_POOL_EXHAUSTED")
        assert (error.cause, error.error_message) == ("OutOfCapacity", "none left")

    Gce(boot_s=600).with_groups().play(story)


def test_discovery_pages_templates_and_prices():
    """Groups are found page by page; their template has labels, reserved resources and a price."""

    async def story(here):
        (group,) = await here.connect().refresh()
        assert (group.id, group.max_size, group.target_size) == (url("system"), 4, 1)
        node = group.template.node
        assert node.metadata.labels["team"] == "shop"
        assert node.status.allocatable["cpu"] == "3940m"
        assert [one.metadata.name for one in group.template.pods] == ["kube-proxy-system"]
        (offering,) = group.offerings
        assert (offering.instance_type, offering.zone, offering.market) == (
            "e2-standard-4",
            ZONE,
            "on-demand",
        )
        assert (
            offering.price_per_hour == pytest.approx(group.price_per_hour) == pytest.approx(0.148, abs=0.02)
        )

    Gce(discovery=("mig:namePrefix=s,min=0,max=4",)).with_groups().play(story)


def test_a_group_is_like_its_pattern():
    """It has a template of its own: the pattern's with another machine type, and without its mark."""

    async def story(here):
        made = await created_like_its_pattern(here)
        return made, here.fake.managers[LARGE], here.fake.templates[LARGE]

    made, manager, own = Gce().with_pattern().play(story)
    assert [one.zone for one in made.offerings] == [ZONE]
    node = made.template.node
    assert (node.metadata.labels["team"], node.status.capacity["cpu"]) == ("shop", "16")
    assert manager == {
        "name": LARGE,
        "baseInstanceName": LARGE,
        "description": "kubetide.dev/created-from=workers",
        "instanceTemplate": f"projects/{PROJECT}/global/instanceTemplates/{LARGE}",
        "autoHealingPolicies": [{"healthCheck": "h", "initialDelaySec": 300}],
    }
    assert own == {
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


def test_labels_of_any_name_are_copied():
    """``kind`` is the server's in parts of its own, and the owner's among labels."""
    labels = {"kind": "worker", "fingerprint": "x"}

    async def story(here):
        cloud = here.connect()
        await cloud.create_group(await first_of(cloud))
        return here.fake.templates[LARGE]["properties"]

    assert Gce().with_pattern(labels=labels).play(story)["labels"] == labels


def test_a_created_group_outlives_its_pattern_where_discovery_would_find_that():
    """A later process finds it by what its description says, as long as the pattern's name matches."""

    async def story(here):
        earlier = here.connect()
        made = await earlier.create_group(await first_of(earlier))
        later = here.connect()
        await later.refresh()
        here.fleet.groups["elsewhere"] = here.fleet.groups.pop("workers")
        await here.clock.sleep(minutes(1))
        assert [one.id for one in await later.refresh()] == [made.id]
        await later.delete_group(made.id)
        assert here.there() == ({"elsewhere", "plain"}, {"workers-v1"})

    Gce(discovery=("mig:namePrefix=work,max=3",)).with_pattern().play(story)


def test_a_created_group_stays_known_while_its_zone_cannot_be_listed():
    """A list that fails takes no group away."""

    async def story(here):
        cloud = here.connect()
        made = await cloud.create_group(await first_of(cloud))
        await cloud.refresh()
        await here.clock.sleep(minutes(1))
        here.fake.errors = [(403, "forbidden")]
        assert made.id in [one.id for one in await cloud.refresh()]
        assert not here.fake.errors

    Gce(page=500).with_pattern().play(story)


def test_a_template_that_was_left_behind_is_replaced():
    """One of the new group's name that this program made goes; somebody else's stays, and is an error."""

    async def story(here):
        cloud, templates = here.connect(), here.fake.templates
        new = await first_of(cloud)
        templates[LARGE] = {**template(""), "name": LARGE}
        with pytest.raises(CloudError, match="alreadyExists"):
            await cloud.create_group(new)
        assert templates[LARGE]["description"] == "made by hand"
        templates[LARGE]["description"] = "kubetide.dev/created-from=workers"
        await cloud.create_group(new)
        assert templates[LARGE]["properties"]["machineType"] == "e2-standard-16"

    Gce().with_pattern().play(story)


def test_a_type_that_there_is_not_is_asked_for_once():
    """It is named in a warning each time."""

    async def story(here):
        cloud = here.connect()
        for _ in range(2):
            [group] = await cloud.refresh()
            assert len(group.warnings) == 1
        assert here.fake.calls.count("GET e9-huge") == 1

    Gce().with_pattern("e2-standard-16 e9-huge").play(story)
