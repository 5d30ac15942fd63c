"""The node loop's series of what fails: increases, machines that never join, and whole ticks."""

from __future__ import annotations

import pytest
from tests.nodes.live import START
from tests.runtime.series.scraped import NO_GPU, reported

from kubetide.embedded.cloud import CallFailure, CloudFaults, GroupSpec, Window
from kubetide.ports.errors import CloudError
from kubetide.units.time import after, minutes


def test_refused_increases_and_machines_that_fail_are_counted():
    """A stock-out has the cloud's code; a machine that never joins is a timeout and is removed."""
    out = Window(START, after(START, minutes(4)), group="first")
    groups = (
        GroupSpec(name="first", instance_type="m5.large", max_size=6),
        GroupSpec(name="second", instance_type="m5.xlarge", max_size=6),
    )

    async def story(world):
        await world.deploy(replicas=5, cpu="1500m")
        await world.after(minutes(10))
        found = world.read()
        failures = [one for one in world.recorder.reasons if one.code == "FailedInstance"]
        failed = {key[-1]: count for key, count in found.items() if key[0] == "failed_scale_ups_total"}
        assert failures
        assert sum(failed.values()) == len(failures)
        unmade = {key[1]: count for key, count in found.items() if key[0] == "failed_node_creations_total"}
        assert sum(unmade.values()) == sum(dict(one.fields)["instances"] for one in failures)
        assert set(unmade) == set(failed)

    reported(story, groups, faults=CloudFaults(stock_outs=(out,)))


def test_machines_that_never_join_time_out_and_are_removed():
    """After the provision time the scale-up has failed, and the machines are deleted and counted."""
    groups = (GroupSpec(name="lost", instance_type="m5.large", max_size=3, join_failure=1.0),)

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(12))
        found = world.read()
        assert found["failed_scale_ups_total", *NO_GPU, "timeout"] == 1
        assert found["failed_node_creations_total", "timeout"] == 2
        removed = [one for one in world.recorder.reasons if one.code == "UnregisteredRemoved"]
        assert found["old_unregistered_nodes_removed_count",] == len(removed) > 0

    reported(story, groups, max_node_provision_time=minutes(5))


def test_a_tick_that_fails_is_counted_by_whose_error_it_was():
    """An error of the cloud's and a bug are counted separately."""

    async def story(world):
        refresh = world.cloud.refresh
        failing = iter([CloudError("down"), CloudError("down"), ValueError("a bug")])

        async def failing_refresh():
            error = next(failing, None)
            if error is not None:
                raise error
            return await refresh()

        world.controller._gatherer._cloud.refresh = failing_refresh
        await world.after(minutes(1))
        found = world.read()
        assert found["errors_total", "cloudProviderError"] == 2
        assert found["errors_total", "internalError"] == 1
        assert found["errors_total", "apiCallError"] == 0
        world.controller.health.failures = 0

    reported(story)


def test_an_increase_that_the_cloud_refuses_is_a_failed_scale_up():
    """As upstream, a failed call counts by the type of its error, not by the cloud's code."""
    window = Window(START, after(START, minutes(2)))

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(1))
        found = world.read()
        assert found["failed_scale_ups_total", *NO_GPU, "cloudProviderError"] == 1
        assert found["failed_node_creations_total", "cloudProviderError"] == 2
        assert ("scaled_up_nodes_total", *NO_GPU) not in found

    reported(story, faults=CloudFaults(call_failures=(CallFailure(window),)))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            CloudError("gone", error_code="404", error_type="nodeGroupDoesNotExistError"),
            "nodeGroupDoesNotExistError",
        ),
        (ValueError("a bug"), "internalError"),
    ],
)
def test_a_failed_scale_up_has_the_type_of_its_error(error, reason):
    """As upstream, the series and the group's backoff agree on it."""

    async def story(world):
        async def refuse(_group, _delta):
            raise error

        world.cloud.increase_size = refuse
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(1))
        found = world.read()
        assert found["failed_scale_ups_total", *NO_GPU, reason] == 1
        assert found["failed_node_creations_total", reason] == 2
        assert found["failed_scale_ups_total", *NO_GPU, "cloudProviderError"] == 0
        [entry] = world.controller.state.memory.backoff.values()
        assert entry.error_code == reason
        world.controller.health.failures = 0

    reported(story)
