"""A machine of a scale set as the provider knows it, and how it is deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kubetide.clouds.azure.api import ComputeApi
from kubetide.clouds.azure.model import Machine, ScaleSet
from kubetide.clouds.azure.references import last_segment, provider_id
from kubetide.clouds.azure.skus import may_force
from kubetide.clouds.azure.status import StatusRules, VmStatus, machine_status, power_of, provisioned
from kubetide.ports.cloud import Instance
from kubetide.ports.errors import CloudError


class SetMachine(NamedTuple):
    """A machine: by what its node and its set call it, and how it is."""

    provider_id: str
    instance_id: str
    status: VmStatus

    def as_instance(self) -> Instance:
        """Return what the loop is shown of it; one whose state is unknown counts as running."""
        return Instance(
            provider_id=self.provider_id, state=self.status.state or "Running", error=self.status.error
        )


def read_machine(
    scale_set: ScaleSet, one: Machine, rules: StatusRules, before: Mapping[str, VmStatus]
) -> SetMachine:
    """Return a machine of the API. Raises CloudError.

    Args:
        scale_set: Its set.
        one: The machine.
        rules: What is switched on.
        before: The last known states, by provider id in lower case.
    """
    node_id = provider_id(one.id)
    if scale_set.is_flexible:
        properties = one.properties
        state = provisioned(properties.provisioning_state or "", power_of(properties.instance_view), rules)
        return SetMachine(node_id, last_segment(one.id), state)
    return SetMachine(node_id, one.instance_id, machine_status(one, rules, before.get(node_id.lower())))


async def delete_machines(
    api: ComputeApi, scale_set: ScaleSet, instance_ids: Sequence[str], *, force: bool
) -> None:
    """Delete machines of a set; where force is not allowed without it, and once more where the order was pre-empted.

    Raises: CloudError.
    """
    sku = scale_set.size
    force = may_force(sku, enabled=force, dedicated_host=scale_set.properties.host_group is not None)
    try:
        await api.delete_machines(scale_set.name, instance_ids, force=force)
    except CloudError as error:
        if error.error_code == "OperationPreempted":
            await api.delete_machines(scale_set.name, instance_ids, force=force)
        elif force and error.error_code == "OperationNotAllowed":
            await api.delete_machines(scale_set.name, instance_ids, force=False)
        else:
            raise
