"""What a Cloud that creates node groups must do besides ``cloud_battery``: the same form, run all of ``CREATION_CASES``.

Needs at least one candidate; the cases leave no group of theirs behind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from kubetide.ports.cloud import GroupCandidate, NodeGroup
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CloudUnderTest

_LABELS = {"example.com/battery": "yes"}


async def _first(test: CloudUnderTest) -> GroupCandidate:
    assert test.cloud.creates_groups, "a cloud with candidates says that it creates groups"
    found = await test.cloud.group_candidates()
    assert found, "there is no candidate"
    return found[0]


async def _create(test: CloudUnderTest) -> NodeGroup:
    candidate = await _first(test)
    labels = {**(candidate.new.labels or {}), **_added(candidate)} or None
    return await test.cloud.create_group(replace(candidate.new, id=f"{candidate.new.id}-x", labels=labels))


def _added(candidate: GroupCandidate) -> dict[str, str]:
    return _LABELS if candidate.takes_labels else {}


async def _refuses_deletion(test: CloudUnderTest, group: str) -> None:
    try:
        await test.cloud.delete_group(group)
    except CloudError:
        return
    raise AssertionError(f"group {group} was deleted")


async def candidates_are_whole(test: CloudUnderTest) -> None:
    """Candidates are ordered by an id of their own, do not exist, begin at zero and say what their nodes look like."""
    first = await _first(test)
    found = await test.cloud.group_candidates()
    ids = [one.new.id for one in found]
    assert ids == sorted(set(ids)), f"{ids} are not in order, or one stands twice"
    for one in found:
        assert one.group.id == one.new.id, "a candidate has one id"
        assert not one.group.exists, f"{one.new.id} exists"
        assert one.new.min_size == 0 < one.new.max_size == one.group.max_size, f"{one.new.id}: its bounds"
        assert one.group.template is not None, f"{one.new.id} has no template"
    assert first.new.id not in [one.id for one in await test.cloud.refresh()], "a candidate is no group"


async def a_created_group_is_what_the_candidate_said(test: CloudUnderTest) -> None:
    """It has the id that was asked for, no node, the candidate's machines and the labels that could be added."""
    candidate = await _first(test)
    made = await _create(test)
    assert made == await test.view(f"{candidate.new.id}-x"), "refresh shows another group"
    assert (made.exists, made.autoprovisioned, made.target_size) == (True, True, 0)
    assert (made.min_size, made.max_size) == (0, candidate.new.max_size)
    assert made.template is not None, "it has no template"
    assert candidate.group.template is not None, "the candidate has no template"
    expected, node = candidate.group.template.node, made.template.node
    assert node.status.allocatable == expected.status.allocatable, "its nodes have other amounts"
    assert _added(candidate).items() <= (node.metadata.labels or {}).items(), "the labels are missing"
    assert made.price_per_hour == candidate.group.price_per_hour, "its price is another"
    await test.cloud.delete_group(made.id)


async def a_created_group_grows_and_goes_once_it_is_empty(test: CloudUnderTest) -> None:
    """It grows like any other, cannot be deleted while it has a machine, and then can."""
    made = await _create(test)
    await test.cloud.increase_size(made.id, 1)
    grown = await test.running(made.id, 1)
    await _refuses_deletion(test, made.id)
    await test.cloud.delete_nodes(made.id, [one.provider_id for one in grown.instances or ()])
    await test.running(made.id, 0)
    await test.cloud.delete_group(made.id)
    assert made.id not in [one.id for one in await test.cloud.refresh()], "the group is still there"


async def no_id_twice(test: CloudUnderTest) -> None:
    """A second group of one id is refused, and the first stays as it is."""
    made = await _create(test)
    try:
        await _create(test)
    except CloudError:
        await test.cloud.delete_group(made.id)
        return
    raise AssertionError(f"{made.id} was created twice")


async def other_groups_are_not_deleted(test: CloudUnderTest) -> None:
    """A group that somebody else made is not deleted, however empty; nor is one that there is not."""
    await _refuses_deletion(test, test.group)
    await _refuses_deletion(test, "nowhere")
    assert (await test.view(test.group)).exists, "the group is gone"


CREATION_CASES: tuple[Callable[[CloudUnderTest], Awaitable[None]], ...] = (
    candidates_are_whole,
    a_created_group_is_what_the_candidate_said,
    a_created_group_grows_and_goes_once_it_is_empty,
    no_id_twice,
    other_groups_are_not_deleted,
)
