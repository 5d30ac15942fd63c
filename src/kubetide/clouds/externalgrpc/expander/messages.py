"""The messages of the expander's protocol, and pods and nodes in them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec

from kubetide.clouds.externalgrpc.messages import message_types, method_types
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.protobuf import ProtobufError, decode_message
from kubetide.objects.protobuf_encoding import encode_message
from kubetide.ports.errors import CloudError

PACKAGE: Final = "grpcplugin"
SERVICE: Final = f"{PACKAGE}.Expander"
METHOD: Final = "BestOptions"
POD_TYPE: Final = "io.k8s.api.core.v1.Pod"
NODE_TYPE: Final = "io.k8s.api.core.v1.Node"
CHANNEL_OPTIONS: Final = (("grpc.max_receive_message_length", 128 << 20),)
"""Of client and server: messages have all pods of all options. Source: cluster-autoscaler, ``gRPCMaxRecvMsgSize``."""


def proto_text() -> str:
    """Return the protocol as text, for other languages' generators."""
    return files(__package__).joinpath("protocol.proto").read_text(encoding="utf-8")


MESSAGES: Final[Mapping[str, Any]] = message_types(proto_text(), PACKAGE)
"""Message classes by name."""

METHODS: Final = method_types(proto_text())
"""The names of request and response by method."""


def pod_bytes(pod: Pod) -> bytes:
    """Return a pod in Kubernetes' protobuf form, without its envelope."""
    return encode_message(msgspec.to_builtins(pod), POD_TYPE)


def node_bytes(node: Node) -> bytes:
    """Return a node in Kubernetes' protobuf form, without its envelope."""
    return encode_message(msgspec.to_builtins(node), NODE_TYPE)


def pod_of(raw: bytes) -> Pod:
    """Read what ``pod_bytes`` or upstream wrote. Raises CloudError."""
    try:
        return msgspec.convert(decode_message(raw, POD_TYPE), Pod)
    except (ProtobufError, msgspec.ValidationError) as error:
        raise CloudError(f"an option holds what is no pod in protobuf: {error}") from error


def node_of(raw: bytes) -> Node:
    """Read what ``node_bytes`` or upstream wrote. Raises CloudError."""
    try:
        return msgspec.convert(decode_message(raw, NODE_TYPE), Node)
    except (ProtobufError, msgspec.ValidationError) as error:
        raise CloudError(f"nodeBytesMap holds what is no node in protobuf: {error}") from error
