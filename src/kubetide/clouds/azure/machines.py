"""A machine of a scale set as the provider knows it, and how it is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kubetide.clouds.azure.api import ComputeApi
from kubetide.clouds.azure.model import Machine, ScaleSet
from kubetide.clouds.azure.operations import PREEMPTED, DeletionOrder
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


def read_machines(
    scale_set: ScaleSet, listed: Iterable[Machine], rules: StatusRules, before: Mapping[str, VmStatus]
) -> Iterator[SetMachine]:
    """Yield the machines of a list; one without an id, or whose id cannot be read, is left out, as upstream.

    Args:
        scale_set: Their set.
        listed: The machines.
        rules: What is switched on.
        before: The last known states, by provider id in lower case.
    """
    for one in listed:
        try:
            node_id = provider_id(one.id)
        except CloudError:
            continue
        yield _read(scale_set, one, node_id, rules, before)


def _read(
    scale_set: ScaleSet, one: Machine, node_id: str, rules: StatusRules, before: Mapping[str, VmStatus]
) -> SetMachine:
    if scale_set.is_flexible:
        properties, view = one.properties, one.properties.instance_view
        # Unlike in a uniform set, a view without statuses is as good as none here.
        power = power_of(view if view is not None and view.statuses is not None else None)
        given = properties.provisioning_state
        state = VmStatus(None) if given is None else provisioned(given, power, rules)
        return SetMachine(node_id, last_segment(one.id), state)
    return SetMachine(node_id, one.instance_id, machine_status(one, rules, before.get(node_id.lower())))


async def delete_machines(api: ComputeApi, scale_set: ScaleSet, deletion: DeletionOrder) -> str:
    """Order the deletion of machines; return the URL of the operation. Raises CloudError.

    The order is sent without force where that is not allowed, and once more where it was pre-empted.
    """
    ids = deletion.instance_ids
    is_hosted = scale_set.properties.host_group is not None
    force = may_force(scale_set.size, enabled=deletion.force, dedicated_host=is_hosted)
    try:
        return await api.delete_machines(scale_set.name, ids, force=force)
    except CloudError as error:
        if error.error_code == PREEMPTED:
            return await api.delete_machines(scale_set.name, ids, force=force)
        if force and error.error_code == "OperationNotAllowed":
            return await api.delete_machines(scale_set.name, ids, force=False)
        raise
