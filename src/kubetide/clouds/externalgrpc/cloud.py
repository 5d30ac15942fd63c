"""The Cloud port over upstream's externalgrpc protocol.

Of each group four questions go out in a refresh: target, instances, options and template, and of a provider that has
prices a fifth, what a new node costs an hour. A group that fails keeps its last view and says so; the others go on.
Of each node one goes out now and then: which group it is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from msgspec.structs import replace

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.common.pagination import each_once
from kubetide.clouds.common.readings import unread_group
from kubetide.clouds.externalgrpc.joined_nodes import JoinedNodes, stand_in
from kubetide.clouds.externalgrpc.membership import Membership, placed
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
_MOST_MACHINES: Final = 200_000
"""Far more than Kubernetes takes into a cluster."""


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
        nodes: JoinedNodes | None = None,
        now: Callable[[], Instant] = lambda: Instant(0),
    ) -> None:
        """Nothing is asked before ``ask_gpus`` or the first refresh.

        Args:
            call: The calls.
            address: Of the provider, for messages.
            defaults: What the flags say, sent along when the provider is asked for options.
            nodes: Those that the provider is asked for, and told of in deletions; None where there is no cluster: then
                a group has what it lists.
            now: The time that prices are asked for, and from which on answers for nodes hold.
        """
        self._call = call
        self._address = address
        self._defaults = defaults
        self._nodes, self._now = nodes, now
        self._membership = Membership(self._group_for_node, now)
        self._has_prices = True
        # What came of the last refresh's questions for prices: refused as not implemented, and anything else.
        self._price_refused = self._price_answered = False
        self._gpu_label: str | None = None
        self._gpu_types: tuple[str, ...] | None = None
        self._groups: dict[str, NodeGroup] = {}

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
        await self._ask("Refresh")
        await self.ask_gpus()
        answer = await self._ask("NodeGroups")
        reported = sorted({one.id: one for one in answer.nodeGroups}.values(), key=lambda one: str(one.id))
        self._price_refused = self._price_answered = False
        views = await in_parallel(reported, self._view, limit=_AT_ONCE)
        # A provider may know the prices of some of its groups and have no other word for the rest.
        self._has_prices = self._has_prices and (self._price_answered or not self._price_refused)
        if self._nodes is not None:
            views = await self._placed(views, self._nodes)
        self._groups = {view.id: view for view in views}
        return views

    async def _placed(self, views: Sequence[NodeGroup], nodes: JoinedNodes) -> list[NodeGroup]:
        """Return the groups with the machines that the provider says are theirs."""
        asked = dict(nodes.by_machine())
        for one in (one for view in views for one in view.instances or ()):
            # As upstream: of a machine that goes or has failed nobody waits for the node.
            if one.provider_id not in asked and one.state != "Deleting" and one.error is None:
                asked[one.provider_id] = stand_in(one)
        await self._membership.renew(asked.values())
        if self._membership.supported:
            views = placed(views, asked, self._membership)
        problem = nodes.problem
        return [view if view.stale or not problem else replace(view, stale=problem) for view in views]

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
        if not 0 <= size <= _MOST_MACHINES:
            # Each one is planned with until it comes.
            raise CloudError(f"NodeGroupTargetSize: {size} is no size of a group: 0 to {_MOST_MACHINES} are")
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

    async def _group_for_node(self, node: Node) -> str:
        group_id: str = (await self._ask("NodeGroupForNode", node=_node_message(node))).nodeGroup.id
        return group_id

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

        The protocol does not know ``force``: with it, and for machines that could not be created, only the provider's own
        check of the minimum is left.
        """
        group = await self._group(group_id)
        nodes = self._joined()
        listed = {one.provider_id: one for one in await self._instances(group_id)}
        doomed = tuple(dict.fromkeys(provider_ids))
        members = await in_parallel(
            doomed, lambda one: self._is_member(one, nodes.get(one), group_id), limit=_AT_ONCE
        )
        foreign = [
            one
            for one, is_member in zip(doomed, members, strict=True)
            if not (one in listed if is_member is None else is_member)
        ]
        if foreign:
            raise CloudError(f"node group {group_id}: {', '.join(foreign)} does not belong to it")
        machines = [listed.get(one) or Instance(provider_id=one) for one in doomed]
        going = [one for one in machines if one.state != "Deleting"]
        # As upstream: a machine that could not be created serves nobody, so whether it goes is the provider's to say.
        if not force and any(one.error is None for one in going):
            left = await self._target(group_id) - len(going)
            if left < group.min_size:
                raise CloudError(
                    f"node group {group_id}: min size reached: minimum {group.min_size}, {left} would be left"
                )
        if going:
            described = [_node_message(nodes.get(one.provider_id) or stand_in(one)) for one in going]
            await self._ask("NodeGroupDeleteNodes", id=group_id, nodes=described)

    def _joined(self) -> Mapping[str, Node]:
        """Return the nodes by machine. Raises CloudError where that may be old: one that has joined must not seem not to have."""
        if self._nodes is None:
            return {}
        if self._nodes.problem:
            raise CloudError(f"{self._nodes.problem}; nothing is deleted until they can be")
        return self._nodes.by_machine()

    async def _is_member(self, machine: str, node: Node | None, group_id: str) -> bool | None:
        """Return whether the provider says that a machine is the group's, of one with a node as of now; None where it says nothing."""
        try:
            group = None if node is None else await self._membership.ask(node)
        except CloudUnsupported:
            group = None
        if group is None:
            group = self._membership.group_of(node or stand_in(Instance(provider_id=machine)))
        return None if group is None else group == group_id

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
    nodes: JoinedNodes | None = None,
    now: Callable[[], Instant] = lambda: Instant(0),
) -> ExternalGrpcCloud:
    """Return the cloud behind a provider, with what it says of GPUs if it answers."""
    cloud = ExternalGrpcCloud(call, address=address, defaults=defaults, nodes=nodes, now=now)
    await cloud.ask_gpus()
    return cloud
