"""The Cloud port over upstream's externalgrpc protocol.

Of each group four questions go out in a refresh: target, instances, options and template, and of a provider that has
prices a fifth, what a new node costs an hour. A group that fails keeps its last view and says so; the others go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from msgspec.structs import replace

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.common.pagination import each_once
from kubetide.clouds.common.readings import unread_group
from kubetide.clouds.externalgrpc.joined_nodes import NodeOf
from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS
from kubetide.clouds.externalgrpc.readings import (
    instance_of,
    node_message,
    options_message,
    options_of,
    template_of,
)
from kubetide.clouds.registry import UPSTREAM_OPTIONS
from kubetide.objects.node import Node
from kubetide.ports.cloud import Cloud, GroupOptions, Instance, KnowsMachines, NodeGroup, NodeTemplate
from kubetide.ports.errors import CloudError, CloudUnsupported
from kubetide.units.time import Instant

_AT_ONCE: Final = 8
_NS: Final = 1_000_000_000
_S_PER_HOUR: Final = 3600
_FAKE_NODE_REASON: Final = "k8s.io/cluster-autoscaler/fake-node-reason"


class Caller(Protocol):
    """Makes calls of the protocol."""

    async def __call__(self, method: str, request: Any) -> Any:
        """Return the answer's message. Raises CloudError, CloudUnsupported for status Unimplemented."""
        ...


class ExternalGrpcCloud(Cloud):
    """Node groups of a provider in another process."""

    name = "externalgrpc"
    # The protocol has no question about one machine, so the taint for deletion says that it goes.
    knows_machines: KnowsMachines = "unknown"

    def __init__(
        self,
        call: Caller,
        *,
        address: str,
        defaults: GroupOptions = UPSTREAM_OPTIONS,
        node_of: NodeOf = lambda _: None,
        now: Callable[[], Instant] = lambda: Instant(0),
    ) -> None:
        """Nothing is asked before ``ask_gpus`` or the first refresh.

        Args:
            call: The calls.
            address: Of the provider, for messages.
            defaults: What the flags say, sent along when the provider is asked for options.
            node_of: Finds the node of an instance that is deleted.
            now: The time that prices are asked for.
        """
        self._call = call
        self._address = address
        self._defaults = defaults
        self._node_of, self._now = node_of, now
        self._has_prices = True
        # What came of the last refresh's questions for prices: refused as not implemented, and anything else.
        self._price_refused = self._price_answered = False
        self._gpu_label: str | None = None
        self._gpu_types: tuple[str, ...] | None = None
        self._groups: dict[str, NodeGroup] = {}
        self._group_of_node: dict[tuple[str, str], NodeGroup] = {}

    @property
    def gpu_label(self) -> str:
        """The label that the provider reported; empty until it has, and where it has none."""
        return self._gpu_label or ""

    @property
    def gpu_types(self) -> Sequence[str]:
        """The types of GPUs that it reported, ordered."""
        return self._gpu_types or ()

    async def ask_gpus(self) -> None:
        """Ask what marks GPU nodes, each of the two questions until it is answered: with a failure nothing is known.

        A provider without the method has none.
        """
        if self._gpu_label is None:
            with suppress(CloudError):
                answer = await self._ask_optional("GPULabel")
                self._gpu_label = "" if answer is None else str(answer.label)
        if self._gpu_types is None:
            with suppress(CloudError):
                answer = await self._ask_optional("GetAvailableGPUTypes")
                self._gpu_types = () if answer is None else tuple(sorted(answer.gpuTypes))

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return all groups ordered by id. Raises CloudError when the provider does not answer at all.

        Upstream takes an answer that fails for no groups; here it is an error, so that nothing is decided on it.
        """
        self._group_of_node.clear()
        await self._ask("Refresh")
        await self.ask_gpus()
        answer = await self._ask("NodeGroups")
        reported = sorted({one.id: one for one in answer.nodeGroups}.values(), key=lambda one: str(one.id))
        self._price_refused = self._price_answered = False
        views = await in_parallel(reported, self._view, limit=_AT_ONCE)
        # A provider may know the prices of some of its groups and have no other word for the rest.
        self._has_prices = self._has_prices and (self._price_answered or not self._price_refused)
        self._groups = {view.id: view for view in views}
        return views

    async def _view(self, reported: Any) -> NodeGroup:
        bounds = {"min_size": reported.minSize, "max_size": reported.maxSize, "debug": reported.debug}
        try:
            size = await self._target(reported.id)
            instances = tuple(await self._instances(reported.id))
            options = await self.options(reported.id)
        except CloudError as error:
            held, trouble = self._groups.get(reported.id), f"node group {reported.id}: {error}"
            if held is None or held.instances is None:
                return unread_group(reported.id, trouble, reported.debug)
            return replace(held, stale=trouble, **bounds)
        template, refusal = await self._template(reported.id)
        return NodeGroup(
            id=reported.id,
            target_size=size,
            instances=instances,
            template=template,
            template_error=refusal,
            options=options,
            price_per_hour=await self._price(template),
            **bounds,
        )

    async def _target(self, group_id: str) -> int:
        size: int = (await self._ask("NodeGroupTargetSize", id=group_id)).targetSize
        return size

    async def template(self, group_id: str) -> NodeTemplate | None:
        """Return the template of a group; None when there is none. Raises CloudUnsupported, CloudError."""
        return template_of(await self._ask("NodeGroupTemplateNodeInfo", id=group_id), self._address)

    async def _template(self, group_id: str) -> tuple[NodeTemplate | None, str]:
        try:
            template = await self.template(group_id)
        except CloudError as error:
            return None, str(error)
        return template, "" if template else f"node group {group_id}: the provider has no template"

    async def _price(self, template: NodeTemplate | None) -> float | None:
        """Return what a new node costs in the hour to come; None where the provider says none that a machine may have.

        Source: cluster-autoscaler, expander ``price``, which asks with a template's node.
        """
        if template is None or not self._has_prices:
            return None
        request = MESSAGES["PricingNodePriceRequest"](node=_node_message(template.node))
        start = self._now() // _NS
        request.startTimestamp.seconds, request.endTimestamp.seconds = start, start + _S_PER_HOUR
        try:
            price: float | None = (await self._call("PricingNodePrice", request)).price
        except CloudUnsupported:
            self._price_refused = True
            return None
        except CloudError:
            price = None
        self._price_answered = True
        # A price that no machine has would make the group the cheapest or the dearest of all, or comparable to none.
        return price if price is not None and math.isfinite(price) and price >= 0 else None

    async def options(self, group_id: str) -> GroupOptions | None:
        """Return the options of a group; None keeps the flags. Raises CloudError."""
        defaults = options_message(self._defaults)
        try:
            return options_of(await self._ask("NodeGroupGetOptions", id=group_id, defaults=defaults))
        except CloudUnsupported:
            return None

    async def group_of(self, node: Node) -> NodeGroup | None:
        """Return the group that the provider says a node belongs to; asked once until the next refresh."""
        key = (node.metadata.name, node.spec.provider_id)
        if key in self._group_of_node:
            return self._group_of_node[key]
        answer = (await self._ask("NodeGroupForNode", node=_node_message(node))).nodeGroup
        if not answer.id:
            return None
        group = NodeGroup(id=answer.id, min_size=answer.minSize, max_size=answer.maxSize, debug=answer.debug)
        self._group_of_node[key] = group
        return group

    # ── commands ────────────────────────────────────────────────────────────────────────────────

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Ask for more nodes, once sign and maximum are checked. Raises CloudError."""
        group = await self._group(group_id)
        if delta <= 0:
            raise CloudError(f"node group {group_id}: size increase must be positive, not {delta}")
        size = await self._target(group_id) + delta
        if size > group.max_size:
            raise CloudError(
                f"node group {group_id}: size increase too large - desired:{size} max:{group.max_size}"
            )
        await self._ask("NodeGroupIncreaseSize", id=group_id, delta=delta)

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Withdraw nodes that do not exist yet; which these are the provider decides. Raises CloudError."""
        await self._group(group_id)
        if delta <= 0:
            raise CloudError(f"node group {group_id}: size decrease must be positive, not {delta}")
        await self._ask("NodeGroupDecreaseTargetSize", id=group_id, delta=-delta)

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Delete nodes of a group. Raises CloudError.

        The protocol does not know ``force``: with it only the provider's own check of the minimum is left.
        """
        group = await self._group(group_id)
        doomed = tuple(dict.fromkeys(provider_ids))
        there = {one.provider_id: one for one in await self._instances(group_id)}
        foreign = [one for one in doomed if one not in there]
        if foreign:
            raise CloudError(f"node group {group_id}: {', '.join(foreign)} does not belong to it")
        going = [one for one in doomed if there[one].state != "Deleting"]
        left = await self._target(group_id) - len(going)
        if going and not force and left < group.min_size:
            raise CloudError(
                f"node group {group_id}: min size reached: minimum {group.min_size}, {left} would be left"
            )
        if going:
            nodes = [self._described(there[one]) for one in going]
            await self._ask("NodeGroupDeleteNodes", id=group_id, nodes=nodes)

    def _described(self, instance: Instance) -> Any:
        """Return the message of an instance's node; of one that has not joined, that of upstream's stand-in for it."""
        node = self._node_of(instance.provider_id)
        if node is None:
            reason = "create-error" if instance.error else "unregistered"
            return node_message(instance.provider_id, instance.provider_id, {}, {_FAKE_NODE_REASON: reason})
        return _node_message(node)

    async def _instances(self, group_id: str) -> list[Instance]:
        answer = await self._ask("NodeGroupNodes", id=group_id)
        return each_once(map(instance_of, answer.instances), lambda one: one.provider_id)

    async def _ask(self, method: str, **fields: Any) -> Any:
        return await self._call(method, MESSAGES[METHODS[method][0]](**fields))

    async def _ask_optional(self, method: str) -> Any:
        """Return the answer; None where the provider does not have the method."""
        try:
            return await self._ask(method)
        except CloudUnsupported:
            return None

    async def _group(self, group_id: str) -> NodeGroup:
        if not self._groups:
            await self.refresh()
        group = self._groups.get(group_id)
        if group is None:
            raise CloudError(f"no node group {group_id}; there are {', '.join(self._groups) or 'none'}")
        if group.instances is None:
            raise CloudError(group.stale)
        return group


def _node_message(node: Node) -> Any:
    meta = node.metadata
    return node_message(meta.name, node.spec.provider_id, meta.labels or {}, meta.annotations or {})


async def open_cloud(
    call: Caller,
    address: str,
    defaults: GroupOptions = UPSTREAM_OPTIONS,
    *,
    node_of: NodeOf = lambda _: None,
    now: Callable[[], Instant] = lambda: Instant(0),
) -> ExternalGrpcCloud:
    """Return the cloud behind a provider, with what it says of GPUs if it answers."""
    cloud = ExternalGrpcCloud(call, address=address, defaults=defaults, node_of=node_of, now=now)
    await cloud.ask_gpus()
    return cloud
