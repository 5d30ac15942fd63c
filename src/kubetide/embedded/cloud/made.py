"""Groups that are made while the cloud runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kubetide.embedded.cloud.catalogue import InstanceType
from kubetide.embedded.cloud.groups import GroupSpec
from kubetide.embedded.cloud.machines import Group
from kubetide.ports.cloud import GroupCandidate, NewGroup
from kubetide.ports.errors import CloudError


def candidates_of(
    creatable: Sequence[GroupSpec], catalogue: Mapping[str, InstanceType]
) -> tuple[GroupCandidate, ...]:
    """Return what may be asked for, in the order given."""
    found = []
    for spec in creatable:
        new = NewGroup(
            id=spec.name,
            max_size=spec.max_size,
            instance_type=spec.instance_type,
            zones=spec.zones,
            labels=dict(spec.labels) or None,
            taints=spec.taints or None,
        )
        group = Group(spec, catalogue.get(spec.instance_type), made=new).view()
        found.append(GroupCandidate(new=new, group=replace(group, exists=False)))
    return tuple(found)


def made_group(
    new: NewGroup, catalogue: Mapping[str, InstanceType], creatable: Sequence[GroupSpec] = ()
) -> Group:
    """Return an empty group as asked for. Raises CloudError for one that cannot be.

    Its machines cost and take as long as those of the first of ``creatable`` that buys the same type in the same zones.
    """
    kind = catalogue.get(new.instance_type)
    if kind is None:
        known = ", ".join(sorted(catalogue))
        raise CloudError(f"node group {new.id}: no instance type {new.instance_type!r}; there are {known}")
    if not new.id or new.market != "on-demand":
        raise CloudError(f"node group {new.id!r}: needs a name, and machines on demand, not {new.market}")
    try:
        zones = new.zones or ("zone-a",)
        same = [one for one in creatable if (one.instance_type, one.zones) == (new.instance_type, zones)]
        plain = GroupSpec(name=new.id, instance_type=new.instance_type, max_size=0)
        spec = dataclasses.replace(
            same[0] if same else plain,
            name=new.id,
            min_size=new.min_size,
            max_size=new.max_size,
            initial=new.min_size,
            zones=zones,
            labels=new.labels or {},
            taints=new.taints or (),
        )
    except ValueError as error:
        raise CloudError(str(error)) from error
    return Group(spec, kind, made=new)
