"""A cloud of ours behind upstream's externalgrpc protocol: what answers each method.

Source: cluster-autoscaler (Aug 2026), externalgrpc: options come as a whole or not at all, deltas of decreases are
negative, and prices are of the time asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from google.protobuf import any_pb2

from kubetide.clouds.common.template import HOSTNAME
from kubetide.clouds.externalgrpc.messages import MESSAGES
from kubetide.clouds.externalgrpc.readings import instance_message, options_message, template_message
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node, NodeSpec
from kubetide.ports.cloud import Cloud, NodeGroup, instance_id
from kubetide.ports.errors import CloudError, CloudUnsupported

_S_PER_HOUR: Final = 3600.0

Answer = Callable[[Any], Awaitable[Any]]


class ProviderService:
    """Answers the protocol's methods from a cloud; reads it anew when asked to, and after each change."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._groups: dict[str, NodeGroup] | None = None

    def methods(self) -> Mapping[str, Answer]:
        """Return what answers each method of the protocol; each raises CloudError."""
        return {
            "NodeGroups": self._node_groups,
            "NodeGroupForNode": self._group_for_node,
            "PricingNodePrice": self._node_price,
            "PricingPodPrice": self._pod_price,
            "GPULabel": self._gpu_label,
            "GetAvailableGPUTypes": self._gpu_types,
            "Cleanup": self._cleanup,
            "Refresh": self._refresh,
            "NodeGroupTargetSize": self._target_size,
            "NodeGroupIncreaseSize": self._increase,
            "NodeGroupDeleteNodes": self._delete,
            "NodeGroupDecreaseTargetSize": self._decrease,
            "NodeGroupNodes": self._nodes,
            "NodeGroupTemplateNodeInfo": self._template,
            "NodeGroupGetOptions": self._options,
        }

    async def _known(self) -> dict[str, NodeGroup]:
        if self._groups is None:
            self._groups = {group.id: group for group in await self._cloud.refresh()}
        return self._groups

    async def _group(self, group_id: str) -> NodeGroup:
        group = (await self._known()).get(group_id)
        if group is None:
            raise CloudError(f"no node group {group_id}")
        return group

    async def _of_node(self, node: Any) -> NodeGroup | None:
        """Return the group of a node; None also for one whose machine a group lists and is to leave alone."""
        meta, spec = ObjectMeta(name=node.name), NodeSpec(provider_id=node.providerID)
        machine = instance_id(Node(metadata=meta, spec=spec))
        for group in (await self._known()).values():
            if any(one.provider_id == machine and one.managed for one in group.instances or ()):
                return group
        return None

    async def _hourly_price(self, node: Any) -> float | None:
        """Return the hourly price of a node: of its group, and of a new one that of the groups whose templates are like it.

        Upstream asks for the prices of new nodes too, which have a template's labels and no instance.
        """
        group = await self._of_node(node)
        if group is not None:
            return group.price_per_hour
        labels = _without_host(node.labels)
        prices = {
            group.price_per_hour
            for group in (await self._known()).values()
            if group.template and _without_host(group.template.node.metadata.labels or {}) == labels
        }
        return prices.pop() if len(prices) == 1 else None

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def _refresh(self, _request: Any) -> Any:
        self._groups = None
        await self._known()
        return MESSAGES["RefreshResponse"]()

    async def _node_groups(self, _request: Any) -> Any:
        groups = (await self._known()).values()
        return MESSAGES["NodeGroupsResponse"](nodeGroups=[_group_message(group) for group in groups])

    async def _group_for_node(self, request: Any) -> Any:
        group = await self._of_node(request.node)
        message = MESSAGES["NodeGroup"]() if group is None else _group_message(group)
        return MESSAGES["NodeGroupForNodeResponse"](nodeGroup=message)

    async def _node_price(self, request: Any) -> Any:
        _check(request, "node", "startTimestamp", "endTimestamp")
        price = await self._hourly_price(request.node)
        if price is None:
            raise CloudUnsupported(f"no price of node {request.node.name} is known")
        start, end = request.startTimestamp, request.endTimestamp
        elapsed = end.seconds - start.seconds + (end.nanos - start.nanos) / 1e9
        return MESSAGES["PricingNodePriceResponse"](price=price * elapsed / _S_PER_HOUR)

    async def _pod_price(self, _request: Any) -> Any:
        raise CloudUnsupported("prices of pods are not known")

    async def _gpu_label(self, _request: Any) -> Any:
        return MESSAGES["GPULabelResponse"](label=self._cloud.gpu_label)

    async def _gpu_types(self, _request: Any) -> Any:
        types = {name: any_pb2.Any() for name in self._cloud.gpu_types}
        return MESSAGES["GetAvailableGPUTypesResponse"](gpuTypes=types)

    async def _cleanup(self, _request: Any) -> Any:
        return MESSAGES["CleanupResponse"]()

    async def _target_size(self, request: Any) -> Any:
        size = (await self._group(request.id)).target_size
        return MESSAGES["NodeGroupTargetSizeResponse"](targetSize=size)

    async def _nodes(self, request: Any) -> Any:
        group = await self._group(request.id)
        return MESSAGES["NodeGroupNodesResponse"](
            instances=[instance_message(one) for one in group.instances or ()]
        )

    async def _template(self, request: Any) -> Any:
        group = await self._group(request.id)
        if group.template is None:
            # Any other refusal ends upstream's whole loop; after this one it goes on with the other groups.
            raise CloudUnsupported(group.template_error or f"node group {group.id} has no template")
        return template_message(group.template)

    async def _options(self, request: Any) -> Any:
        options = (await self._group(request.id)).options
        if options is None:
            return MESSAGES["NodeGroupAutoscalingOptionsResponse"]()
        _check(request, "defaults")
        message = options_message(options, request.defaults)
        return MESSAGES["NodeGroupAutoscalingOptionsResponse"](nodeGroupAutoscalingOptions=message)

    # ── commands ────────────────────────────────────────────────────────────────────────────────

    async def _increase(self, request: Any) -> Any:
        await self._change(self._cloud.increase_size(request.id, request.delta))
        return MESSAGES["NodeGroupIncreaseSizeResponse"]()

    async def _decrease(self, request: Any) -> Any:
        await self._change(self._cloud.decrease_target_size(request.id, -request.delta))
        return MESSAGES["NodeGroupDecreaseTargetSizeResponse"]()

    async def _delete(self, request: Any) -> Any:
        doomed = [node.providerID for node in request.nodes]
        await self._change(self._cloud.delete_nodes(request.id, doomed))
        return MESSAGES["NodeGroupDeleteNodesResponse"]()

    async def _change(self, command: Awaitable[None]) -> None:
        try:
            await command
        finally:
            # Only now: who asks while it is carried out is answered with the size of before.
            self._groups = None


def _check(request: Any, *fields: str) -> None:
    """Check that a request has these fields, as upstream's server does: what is not there would be read as 0."""
    absent = [name for name in fields if not request.HasField(name)]
    if absent:
        raise CloudError(f"{type(request).__name__}: request fields were nil: {', '.join(absent)}")


def _without_host(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key != HOSTNAME}


def _group_message(group: NodeGroup) -> Any:
    return MESSAGES["NodeGroup"](
        id=group.id, minSize=group.min_size, maxSize=group.max_size, debug=group.debug or group.id
    )
