"""What a cloud must do while things go wrong: stock-outs, refused calls, slow machines, answers that lag behind.

The cases go with ``cloud_battery``: each takes a fresh cloud, and a ``FaultControl`` that makes it fail.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from kubetide.ports.cloud import NodeGroup
from kubetide.ports.errors import CloudCause, CloudError
from kubetide.testing.cloud_battery import CloudUnderTest
from kubetide.units.time import after, seconds


class FaultControl(Protocol):
    """Makes a cloud fail, and end failing."""

    async def run_out(self, group: str) -> None:
        """From now on machines that are ordered in this group cannot be had."""
        ...

    async def refuse(self, cause: CloudCause) -> None:
        """From now on every call of the cloud is refused for this cause."""
        ...

    async def heal(self) -> None:
        """From now on nothing fails; what could not be had before still is not there."""
        ...


@dataclass(frozen=True)
class FailingCloud(CloudUnderTest):
    """A cloud, what the cases may rely on, and what makes it fail.

    Attributes:
        faults: Makes it fail.
    """

    faults: FaultControl


async def _told(test: FailingCloud, count: int) -> NodeGroup:
    """Wait until so many machines of the group are shown as failed, and return the group."""

    async def holds() -> bool:
        instances = (await test.view(test.group)).instances or ()
        return sum(one.error is not None for one in instances) == count

    await test.until(f"{count} machines with an error", holds)
    return await test.view(test.group)


async def _refusal(call: Awaitable[object]) -> CloudError:
    try:
        await call
    except CloudError as error:
        return error
    raise AssertionError("the call was accepted; it must raise CloudError")


async def a_stock_out_is_told_on_the_machines(test: FailingCloud) -> None:
    """Machines that cannot be had are being created with an error of class OutOfResource, and the target counts them."""
    await test.faults.run_out(test.group)
    await test.cloud.increase_size(test.group, 2)
    group = await _told(test, 2)
    assert group.target_size == 2, f"the target is {group.target_size}"
    for one in group.instances or ():
        assert one.state == "Creating", f"a machine that cannot be had is {one.state}"
        assert one.error is not None
        assert one.error.error_class == "OutOfResource", f"its class is {one.error.error_class}"
        assert one.error.cause == "OutOfCapacity", f"its cause is {one.error.cause}"
        assert one.error.error_code, "the error has no code"
        assert one.error.error_message, "the error has no message"


async def failed_machines_can_be_given_up(test: FailingCloud) -> None:
    """Deleting a machine that cannot be had lowers the target by one, and leaves the others asked for."""
    await test.faults.run_out(test.group)
    await test.cloud.increase_size(test.group, 2)
    group = await _told(test, 2)
    assert group.instances is not None
    await test.cloud.delete_nodes(test.group, [group.instances[0].provider_id])
    group = await test.view(test.group)
    assert group.target_size == 1, f"the target is {group.target_size}, not 1"


async def a_stock_out_of_one_group_is_its_own(test: FailingCloud) -> None:
    """Other groups grow while one cannot."""
    await test.faults.run_out(test.group)
    await test.cloud.increase_size(test.group, 1)
    await test.cloud.increase_size(test.kept, 1)
    await test.running(test.kept, 2)


async def a_refused_order_changes_nothing(test: FailingCloud) -> None:
    """A throttled order reports its cause; once it is given again, as many machines come as were ordered."""
    await test.view(test.group)
    await test.faults.refuse("Throttled")
    error = await _refusal(test.cloud.increase_size(test.group, 1))
    assert error.cause == "Throttled", f"the cause is {error.cause}"
    assert error.error_class == "Other", f"the class is {error.error_class}"
    await test.faults.heal()
    assert (await test.view(test.group)).target_size == 0, "a refused order changed the target"
    await test.cloud.increase_size(test.group, 1)
    await test.running(test.group, 1)


async def a_refused_deletion_changes_nothing(test: FailingCloud) -> None:
    """A deletion without permission reports its cause, and the machine stays."""
    await test.cloud.increase_size(test.group, 1)
    group = await test.running(test.group, 1)
    assert group.instances is not None
    await test.faults.refuse("Permission")
    error = await _refusal(test.cloud.delete_nodes(test.group, [group.instances[0].provider_id]))
    assert error.cause == "Permission", f"the cause is {error.cause}"
    await test.faults.heal()
    await test.running(test.group, 1)
    assert (await test.view(test.group)).target_size == 1, "a refused deletion changed the target"


async def a_refused_look_loses_nothing(test: FailingCloud) -> None:
    """While looks are refused refresh raises or shows what was; after it the groups are as before."""
    before = [group.id for group in await test.cloud.refresh()]
    await test.faults.refuse("Throttled")
    end = after(test.clock.now(), seconds(180))
    while test.clock.now() < end:
        try:
            seen = [group.id for group in await test.cloud.refresh()]
        except CloudError as error:
            assert error.cause == "Throttled", f"the cause is {error.cause}"  # noqa: PT017  # no test framework here
            seen = before
        assert seen == before, f"groups vanished while the cloud was throttled: {seen}"
        await test.clock.sleep(seconds(10))
    await test.faults.heal()
    assert [group.id for group in await test.cloud.refresh()] == before, "groups were lost"


async def slow_machines_are_never_too_many(test: FailingCloud) -> None:
    """From order to joining, the target stays as ordered, and no more machines are shown than that."""
    await test.cloud.increase_size(test.group, 3)
    end = after(test.clock.now(), test.patience)
    while test.clock.now() < end:
        group = await test.view(test.group)
        instances = group.instances or ()
        assert group.target_size == 3, f"the target became {group.target_size}"
        assert len(instances) <= 3, f"{len(instances)} machines are shown, 3 were ordered"
        if sum(one.state == "Running" for one in instances) == 3:
            return
        await test.clock.sleep(seconds(5))
    raise AssertionError("the machines did not come in time")


FAULT_CASES: tuple[Callable[[FailingCloud], Awaitable[None]], ...] = (
    a_stock_out_is_told_on_the_machines,
    failed_machines_can_be_given_up,
    a_stock_out_of_one_group_is_its_own,
    a_refused_order_changes_nothing,
    a_refused_deletion_changes_nothing,
    a_refused_look_loses_nothing,
    slow_machines_are_never_too_many,
)
