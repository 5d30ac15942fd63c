"""What every implementation of the Cloud port must do: a battery without a test framework.

Each case is an async function that takes a ``CloudUnderTest`` of its own and raises AssertionError
where the cloud falls short. Run all of ``CASES``, each against a fresh cloud.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, NodeGroup
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, after, seconds


@dataclass(frozen=True)
class CloudUnderTest:
    """A cloud and what the cases may rely on.

    Attributes:
        cloud: The cloud.
        clock: The time it lives in.
        group: A group with minimum 0 and maximum 3 that has no instances.
        kept: A group with minimum 1 and maximum 2 that has one running instance.
        patience: By when an ordered instance runs, and a deleted one is gone.
    """

    cloud: Cloud
    clock: Clock
    group: str
    kept: str
    patience: Duration

    async def view(self, group: str) -> NodeGroup:
        """The group as it is now."""
        for each in await self.cloud.refresh():
            if each.id == group:
                return each
        raise AssertionError(f"refresh() does not list {group}")

    async def until(self, what: str, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until the condition holds. Raises AssertionError when patience is at an end."""
        end = after(self.clock.now(), self.patience)
        while not await holds():
            if self.clock.now() >= end:
                raise AssertionError(f"{what}: not within {self.patience / 1e9:g} s")
            await self.clock.sleep(seconds(1))

    async def running(self, group: str, count: int) -> NodeGroup:
        """Wait until just that many instances are there and all run."""

        async def holds() -> bool:
            instances = (await self.view(group)).instances or ()
            return len(instances) == count and all(each.state == "Running" for each in instances)

        await self.until(f"{count} running instances in {group}", holds)
        return await self.view(group)


async def _refused(call: Awaitable[None]) -> None:
    refusal: CloudError | None = None
    try:
        await call
    except CloudError as error:
        refusal = error
    assert refusal is not None, "the call was accepted; it must raise CloudError"
    assert str(refusal), "a CloudError says what was refused"
    assert refusal.error_class in {"OutOfResource", "Other"}, f"unknown error class {refusal.error_class}"


async def groups_are_ordered_by_id(test: CloudUnderTest) -> None:
    """All groups come once, ordered by id."""
    ids = [group.id for group in await test.cloud.refresh()]
    assert ids == sorted(set(ids)), f"not ordered or not unique: {ids}"
    assert {test.group, test.kept} <= set(ids), f"groups are missing from {ids}"


async def bounds_are_shown(test: CloudUnderTest) -> None:
    """Minimum, maximum and target are those of the group."""
    group = await test.view(test.group)
    assert (group.min_size, group.max_size, group.target_size) == (0, 3, 0), f"seen {group}"
    assert not group.instances, f"instances of an empty group: {group.instances}"


async def a_cloud_has_a_name(test: CloudUnderTest) -> None:
    """The provider's name is not empty."""
    assert test.cloud.name, "the name is empty"


async def a_template_says_where_it_comes_from(test: CloudUnderTest) -> None:
    """A group without instances has a template with allocatable resources and a source, or says why not."""
    group = await test.view(test.group)
    if group.template is None:
        assert group.template_error, "neither a template nor an error"
        return
    allocatable = group.template.node.status.allocatable or {}
    assert {"cpu", "memory", "pods"} <= set(allocatable), f"allocatable has only {sorted(allocatable)}"
    assert group.template.source, "the source is empty"
    assert group.template.node.metadata.labels, "a template has labels"


async def an_increase_raises_the_target_at_once(test: CloudUnderTest) -> None:
    """After increase_size the target counts the new nodes, before they run."""
    await test.cloud.increase_size(test.group, 2)
    assert (await test.view(test.group)).target_size == 2, "the target is not 2"


async def an_increase_leads_to_running_instances(test: CloudUnderTest) -> None:
    """Ordered instances come to run, each with a provider id of its own; what was bought may be given back."""
    await test.cloud.increase_size(test.group, 2)
    group = await test.running(test.group, 2)
    ids = [each.provider_id for each in group.instances or ()]
    assert len(set(ids)) == 2, f"provider ids are not unique: {ids}"
    assert all(ids), f"empty provider ids: {ids}"
    assert all(each.managed for each in group.instances or ()), "an ordered instance is to be left alone"


async def an_increase_beyond_the_maximum_is_refused(test: CloudUnderTest) -> None:
    """The maximum holds for the sum of what is there and what is asked, and a refusal changes nothing."""
    await test.cloud.increase_size(test.group, 2)
    await _refused(test.cloud.increase_size(test.group, 2))
    assert (await test.view(test.group)).target_size == 2, "a refused increase changed the target"


async def an_increase_must_be_positive(test: CloudUnderTest) -> None:
    """Increases by 0 or less are refused."""
    await _refused(test.cloud.increase_size(test.group, 0))
    await _refused(test.cloud.increase_size(test.group, -1))


async def an_unknown_group_is_refused(test: CloudUnderTest) -> None:
    """Each command names an existing group."""
    await _refused(test.cloud.increase_size("no-such-group", 1))
    await _refused(test.cloud.decrease_target_size("no-such-group", 1))
    await _refused(test.cloud.delete_nodes("no-such-group", ["x"]))


async def deletion_lowers_the_target_at_once(test: CloudUnderTest) -> None:
    """delete_nodes lowers the target by the number of nodes, and the instance is gone in the end."""
    await test.cloud.increase_size(test.group, 2)
    group = await test.running(test.group, 2)
    assert group.instances is not None
    doomed, left = (each.provider_id for each in group.instances)
    await test.cloud.delete_nodes(test.group, [doomed])
    assert (await test.view(test.group)).target_size == 1, "the target is not 1"
    group = await test.running(test.group, 1)
    assert group.instances is not None
    assert group.instances[0].provider_id == left, "the wrong instance was deleted"
    assert group.target_size == 1, "the target changed while the instance ended"


async def deletion_twice_counts_once(test: CloudUnderTest) -> None:
    """An instance named twice, or deleted again while it ends, lowers the target once."""
    await test.cloud.increase_size(test.group, 3)
    group = await test.running(test.group, 3)
    assert group.instances is not None
    doomed = group.instances[0].provider_id
    await test.cloud.delete_nodes(test.group, [doomed, doomed])
    if any(each.provider_id == doomed for each in (await test.view(test.group)).instances or ()):
        await test.cloud.delete_nodes(test.group, [doomed])
    assert (await test.view(test.group)).target_size == 2, "the target is not 2"


async def deletion_below_the_minimum_is_refused(test: CloudUnderTest) -> None:
    """The minimum holds for delete_nodes; a refusal deletes nothing."""
    group = await test.running(test.kept, 1)
    assert group.instances is not None
    await _refused(test.cloud.delete_nodes(test.kept, [group.instances[0].provider_id]))
    assert (await test.view(test.kept)).target_size == 1, "a refused deletion changed the target"


async def forced_deletion_may_pass_the_minimum(test: CloudUnderTest) -> None:
    """With ``force`` the minimum does not hold."""
    group = await test.running(test.kept, 1)
    assert group.instances is not None
    await test.cloud.delete_nodes(test.kept, [group.instances[0].provider_id], force=True)
    assert (await test.view(test.kept)).target_size == 0, "the target is not 0"


async def deletion_of_a_foreign_instance_is_refused(test: CloudUnderTest) -> None:
    """An instance of another group is not deleted, nor are those named with it."""
    await test.cloud.increase_size(test.group, 1)
    group = await test.running(test.group, 1)
    kept = await test.running(test.kept, 1)
    assert group.instances is not None
    assert kept.instances is not None
    ids = [group.instances[0].provider_id, kept.instances[0].provider_id]
    await _refused(test.cloud.delete_nodes(test.group, ids))
    assert (await test.view(test.group)).target_size == 1, "a refused deletion changed the target"
    assert (await test.view(test.kept)).target_size == 1, "a refused deletion changed another group"


async def a_decrease_never_removes_what_exists(test: CloudUnderTest) -> None:
    """decrease_target_size is refused when all nodes exist, and they stay."""
    await test.cloud.increase_size(test.group, 1)
    await test.running(test.group, 1)
    await _refused(test.cloud.decrease_target_size(test.group, 1))
    await test.running(test.group, 1)


async def a_decrease_withdraws_an_open_order(test: CloudUnderTest) -> None:
    """A node that does not exist yet can be withdrawn; the others come."""
    await test.cloud.increase_size(test.group, 2)
    await test.cloud.decrease_target_size(test.group, 1)
    assert (await test.view(test.group)).target_size == 1, "the target is not 1"
    await test.running(test.group, 1)


async def a_decrease_must_be_positive(test: CloudUnderTest) -> None:
    """Decreases by 0 or less are refused."""
    await _refused(test.cloud.decrease_target_size(test.group, 0))
    await _refused(test.cloud.decrease_target_size(test.group, -1))


async def deletion_allows_a_new_increase(test: CloudUnderTest) -> None:
    """A deleted node no longer counts towards the maximum."""
    await test.cloud.increase_size(test.group, 3)
    group = await test.running(test.group, 3)
    assert group.instances is not None
    await test.cloud.delete_nodes(test.group, [group.instances[0].provider_id])
    await test.running(test.group, 2)
    await test.cloud.increase_size(test.group, 1)
    await test.running(test.group, 3)


async def groups_do_not_touch_one_another(test: CloudUnderTest) -> None:
    """Commands to one group leave the others as they are."""
    before = await test.running(test.kept, 1)
    await test.cloud.increase_size(test.group, 2)
    await test.running(test.group, 2)
    after_ = await test.view(test.kept)
    assert (before.target_size, before.instances) == (after_.target_size, after_.instances), (
        "another group changed"
    )


async def reading_changes_nothing(test: CloudUnderTest) -> None:
    """Two refreshes without a command between them show the same, once the group that is there from the start runs."""
    await test.running(test.kept, 1)
    assert list(await test.cloud.refresh()) == list(await test.cloud.refresh()), "two refreshes differ"


async def scaling_policies_are_of_groups_that_are_shown(test: CloudUnderTest) -> None:
    """The cloud's own scaling policies stand under ids of groups, and no group has an empty list of them."""
    groups = {one.id for one in await test.cloud.refresh()}
    policies = await test.cloud.scaling_policies()
    assert set(policies) <= groups, "a group that is not shown has scaling policies"
    assert all(policies.values()), "a group has an empty list of scaling policies"


CASES: tuple[Callable[[CloudUnderTest], Awaitable[None]], ...] = (
    groups_are_ordered_by_id,
    bounds_are_shown,
    a_cloud_has_a_name,
    a_template_says_where_it_comes_from,
    an_increase_raises_the_target_at_once,
    an_increase_leads_to_running_instances,
    an_increase_beyond_the_maximum_is_refused,
    an_increase_must_be_positive,
    an_unknown_group_is_refused,
    deletion_lowers_the_target_at_once,
    deletion_twice_counts_once,
    deletion_below_the_minimum_is_refused,
    forced_deletion_may_pass_the_minimum,
    deletion_of_a_foreign_instance_is_refused,
    a_decrease_never_removes_what_exists,
    a_decrease_withdraws_an_open_order,
    a_decrease_must_be_positive,
    deletion_allows_a_new_increase,
    groups_do_not_touch_one_another,
    reading_changes_nothing,
    scaling_policies_are_of_groups_that_are_shown,
)
