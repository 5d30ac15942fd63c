"""Messages of the protocol as values of the Cloud port, and back.

Source: cluster-autoscaler (Aug 2026), externalgrpc client. Three things differ on purpose: a duration that the
provider leaves out keeps the flag (upstream reads 0 s and deletes nodes at once), an unknown state counts as running,
and an unknown class of errors as ``Other``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kubetide.clouds.externalgrpc.messages import MESSAGES
from kubetide.objects.base import Json
from kubetide.objects.node import Node
from kubetide.objects.protobuf import ProtobufError, decode_message
from kubetide.objects.protobuf_encoding import encode_message
from kubetide.objects.resource import ResourceSlice
from kubetide.ports.cloud import GroupOptions, Instance, InstanceError, InstanceState, NodeTemplate
from kubetide.ports.errors import CloudError
from kubetide.units.quantity import quantity_error
from kubetide.units.time import Duration, format_duration, parse_duration

NODE_TYPE: Final = "io.k8s.api.core.v1.Node"
SLICE_TYPE: Final = "io.k8s.api.resource.v1.ResourceSlice"
OUT_OF_RESOURCES: Final = 1
OTHER: Final = 99

_STATES: Final[Mapping[int, InstanceState]] = {1: "Running", 2: "Creating", 3: "Deleting"}
_NUMBERS: Final[Mapping[str, int]] = {state: number for number, state in _STATES.items()}
_NS: Final = 1_000_000_000
_DURATIONS: Final = (
    ("scaleDownUnneededDuration", "scale_down_unneeded_time"),
    ("scaleDownUnreadyDuration", "scale_down_unready_time"),
    ("MaxNodeProvisionDuration", "max_node_provision_time"),
    ("maxNodeStartupDuration", "max_node_startup_time"),
)
_VALUES: Final = (
    ("scaleDownUtilizationThreshold", "scale_down_utilization_threshold"),
    ("scaleDownGpuUtilizationThreshold", "scale_down_gpu_utilization_threshold"),
    ("zeroOrMaxNodeScaling", "zero_or_max_node_scaling"),
    ("ignoreDaemonSetsUtilization", "ignore_daemonsets_utilization"),
    ("allowNonAtomicScaleUpToMax", "allow_non_atomic_scale_up_to_max"),
)


def instance_of(message: Any) -> Instance:
    """Return an instance; one without a state runs, and errors count only with a state and a code."""
    number = message.status.instanceState if message.HasField("status") else 0
    if not number:
        return Instance(provider_id=message.id)
    info = message.status.errorInfo
    error = None
    if info.errorCode:
        fits_elsewhere = info.instanceErrorClass == OUT_OF_RESOURCES
        error = InstanceError(
            error_class="OutOfResource" if fits_elsewhere else "Other",
            error_code=info.errorCode,
            error_message=info.errorMessage,
            cause="OutOfCapacity" if fits_elsewhere else "Other",
        )
    return Instance(provider_id=message.id, state=_STATES.get(number, "Running"), error=error)


def instance_message(instance: Instance) -> Any:
    """Return the message of an instance."""
    message = MESSAGES["Instance"](id=instance.provider_id)
    message.status.instanceState = _NUMBERS[instance.state]
    if instance.error is not None:
        message.status.errorInfo.errorCode = instance.error.error_code or "unknown"
        message.status.errorInfo.errorMessage = instance.error.error_message
        known = instance.error.error_class == "OutOfResource"
        message.status.errorInfo.instanceErrorClass = OUT_OF_RESOURCES if known else OTHER
    return message


def template_of(message: Any, provider: str) -> NodeTemplate | None:
    """Return the template of an answer; None for one without a node. Raises CloudError for bytes that are none."""
    if not message.nodeBytes:
        return None
    try:
        node = msgspec.convert(decode_message(message.nodeBytes, NODE_TYPE), Node)
        slices = tuple(
            msgspec.convert(decode_message(one, SLICE_TYPE), ResourceSlice)
            for one in message.resourceSliceBytes
        )
    except (ProtobufError, msgspec.ValidationError) as error:
        raise CloudError(f"{provider}: the template is not a node in protobuf: {error}") from error
    if problem := _unread(node):
        raise CloudError(f"{provider}: the template cannot be read: {problem}")
    return NodeTemplate(node=node, slices=slices or None, source=f"the provider {provider}")


def _unread(node: Node) -> str:
    """Return which amounts of a template are no quantities, which the bytes of one need not be; empty for none."""
    amounts = {"capacity": node.status.capacity or {}, "allocatable": node.status.allocatable or {}}
    return "; ".join(
        f"status.{field}[{name}]: {problem}"
        for field, quantities in amounts.items()
        for name, value in sorted(quantities.items())
        if (problem := quantity_error(value)) is not None
    )


def template_message(template: NodeTemplate) -> Any:
    """Return the message of a template: its node and its devices in Kubernetes' protobuf form, without envelopes."""
    node: Json = msgspec.to_builtins(template.node)
    slices: list[Json] = [msgspec.to_builtins(one) for one in template.slices or ()]
    return MESSAGES["NodeGroupTemplateNodeInfoResponse"](
        nodeBytes=encode_message(node, NODE_TYPE),
        resourceSliceBytes=[encode_message(one, SLICE_TYPE) for one in slices],
    )


def options_of(message: Any) -> GroupOptions | None:
    """Return the options of an answer; None where it has none. A duration that is absent keeps the flag."""
    if not message.HasField("nodeGroupAutoscalingOptions"):
        return None
    options = message.nodeGroupAutoscalingOptions
    found: dict[str, Any] = {own: getattr(options, name) for name, own in _VALUES}
    # A share that is no number compares to nothing; without it the flag holds.
    found = {own: value if math.isfinite(value) else None for own, value in found.items()}
    for name, own in _DURATIONS:
        if options.HasField(name):
            time = getattr(options, name)
            found[own] = format_duration(Duration(time.seconds * _NS + time.nanos))
    return GroupOptions(**found)


def options_message(options: GroupOptions, defaults: Any = None) -> Any:
    """Return the message of options, each that is not set taken from ``defaults``."""
    message = MESSAGES["NodeGroupAutoscalingOptions"]()
    if defaults is not None:
        message.CopyFrom(defaults)
    for name, own in _VALUES:
        value = getattr(options, own)
        if value is not None:
            setattr(message, name, value)
    for name, own in _DURATIONS:
        text = getattr(options, own)
        if text is not None:
            seconds, nanos = divmod(parse_duration(text), _NS)
            time = getattr(message, name)
            time.seconds, time.nanos = seconds, nanos
    return message


def node_message(
    name: str, provider_id: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Any:
    """Return the message of a node."""
    return MESSAGES["ExternalGrpcNode"](
        providerID=provider_id, name=name, labels=dict(labels), annotations=dict(annotations)
    )
