"""Limits that keep a group from growing, raised as far as a number of its new nodes needs.

These are the group's maximum, ``--max-nodes-total``, ``--cores-total``, ``--memory-total``, ``--gpu-total`` and
CapacityQuotas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubetide.nodes.capacity.quotas import quota_of, quota_text, quotas_of
from kubetide.nodes.explain.waiting.pod_changes import Change
from kubetide.nodes.facts.machine_amounts import has_machine_amounts
from kubetide.nodes.scale_up.increase.limits import CLUSTER_WIDE_FLAGS, Headroom
from kubetide.nodes.settings import Settings, parse_gpu_total
from kubetide.nodes.state import State
from kubetide.nodes.templates.template import Template
from kubetide.objects.capacity import CapacityQuota, ResourceAmounts
from kubetide.ports.cloud import NodeGroup

MAXIMUM: Final = "max_size"
LIMITS: Final = frozenset({MAXIMUM, "max_nodes_total", "limits", "quota"})
"""Kinds of changes that raise a limit. Their amounts are for all nodes that are needed, so the last ones hold."""

_NO_LIMIT: Final = f"0:{1 << 62}"


class GroupLimits(NamedTuple):
    """The limits that keep a group from growing, and what counts towards them.

    Attributes:
        group: With its maximum.
        settings: With the limits over the whole cluster.
        quotas: By name: all CapacityQuotas.
        headroom: What these limits leave.
        nodes: In the cluster, those on their way included.
    """

    group: NodeGroup
    settings: Settings
    quotas: Mapping[str, CapacityQuota]
    headroom: Headroom
    nodes: int

    def raised(self, template: Template | None, count: int) -> tuple[GroupLimits, tuple[Change, ...]]:
        """Return limits that let in ``count`` more nodes, and a change for each that is raised."""
        group, settings, quotas = self.group, self.settings, dict(self.quotas)
        changes: list[Change] = []
        if (maximum := group.target_size + count) > group.max_size:
            changes.append(
                Change(MAXIMUM, f"raise max of group {group.id} from {group.max_size} to {maximum}")
            )
            group = replace(group, max_size=maximum)
        limit = settings.max_nodes_total
        if limit and (total := self.nodes + count) > limit:
            changes.append(Change("max_nodes_total", f"raise --max-nodes-total from {limit} to {total}"))
            settings = replace(settings, max_nodes_total=total)
        # No limit is raised to what no machine has.
        if template is not None and has_machine_amounts(template.node.status.capacity or {}):
            settings, flags = _raised_flags(settings, self.headroom, template, count)
            raised, parts = _raised_quotas(quotas, self.headroom, template, count)
            quotas.update(raised)
            changes += [*flags, *parts]
        return self._replace(group=group, settings=settings, quotas=quotas), tuple(changes)

    def lifted(self, maximum: int) -> GroupLimits:
        """Return the same without any limit over the whole cluster, and with this maximum of the group."""
        settings = replace(
            self.settings,
            max_nodes_total=0,
            cores_total=_NO_LIMIT,
            memory_total=_NO_LIMIT,
            gpu_total=(),
            capacity_quotas_enabled=False,
        )
        return self._replace(group=replace(self.group, max_size=maximum), settings=settings)


def enforced_quotas(state: State) -> dict[str, CapacityQuota]:
    """Return the CapacityQuotas that are enforced, by name."""
    names = {one.name for one in quotas_of(state)}
    return {one.metadata.name: one for one in state.capacity.quotas if one.metadata.name in names}


def _raised_flags(
    settings: Settings, headroom: Headroom, template: Template, count: int
) -> tuple[Settings, Sequence[Change]]:
    used, need = headroom.used, template.capacity
    parts: list[str] = []
    raised: dict[str, str] = {}
    exceeded = headroom.exceeded_by(need, count)
    for name, (flag, unit) in CLUSTER_WIDE_FLAGS.items():
        if name in exceeded:
            field = flag.replace("-", "_")
            text = str(getattr(settings, field))
            raised[field] = f"{text.partition(':')[0]}:{-(-(used[name] + need[name] * count) // unit)}"
            parts.append(f"raise --{flag} from {text} to {raised[field]}")
    gpus = []
    for given in settings.gpu_total:
        gpu, limit = parse_gpu_total(given)
        if gpu in exceeded:
            gpus.append(f"{gpu}:{limit.minimum}:{used[gpu] + need[gpu] * count}")
            parts.append(f"raise --gpu-total from {given} to {gpus[-1]}")
        else:
            gpus.append(given)
    changes = [Change("limits", " and ".join(parts))] if parts else []
    return replace(settings, gpu_total=tuple(gpus), **raised), changes


def _raised_quotas(
    quotas: Mapping[str, CapacityQuota], headroom: Headroom, template: Template, count: int
) -> tuple[dict[str, CapacityQuota], list[Change]]:
    need = headroom.uses_of(template.node)
    by_id = {(quota := quota_of(held)).id: (quota, held) for held in quotas.values()}
    raised: dict[str, CapacityQuota] = {}
    changes = []
    for quota_id, resources in headroom.exceeded_quotas(template.node, count):
        quota, held = by_id[quota_id]
        amounts = dict(held.spec.limits.resources or {})
        parts = []
        for name in resources:
            key = quota.key(name)
            missing = need[key] * count - headroom.left[key]
            before, amounts[name] = amounts[name], quota_text(name, quota.limits[name] + missing)
            parts.append(f"{name} from {before} to {amounts[name]}")
        raised[quota.name] = replace(held, spec=replace(held.spec, limits=ResourceAmounts(amounts)))
        changes.append(Change("quota", f"raise {' and '.join(parts)} in {quota_id}"))
    return raised, changes
