"""Groups that are made while the cloud runs."""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.embedded.cloud.catalogue import InstanceType
from kubetide.embedded.cloud.groups import GroupSpec
from kubetide.embedded.cloud.machines import Group
from kubetide.ports.cloud import NewGroup
from kubetide.ports.errors import CloudError


def made_group(new: NewGroup, catalogue: Mapping[str, InstanceType]) -> Group:
    """Return an empty group as asked for. Raises CloudError for one that cannot be."""
    kind = catalogue.get(new.instance_type)
    if kind is None:
        known = ", ".join(sorted(catalogue))
        raise CloudError(f"node group {new.id}: no instance type {new.instance_type!r}; there are {known}")
    if not new.id or new.market != "on-demand":
        raise CloudError(f"node group {new.id!r}: needs a name, and machines on demand, not {new.market}")
    try:
        spec = GroupSpec(
            name=new.id,
            instance_type=new.instance_type,
            min_size=new.min_size,
            max_size=new.max_size,
            initial=new.min_size,
            zones=new.zones or ("zone-a",),
            labels=new.labels or {},
            taints=new.taints or (),
        )
    except ValueError as error:
        raise CloudError(str(error)) from error
    return Group(spec, kind, made=new)
