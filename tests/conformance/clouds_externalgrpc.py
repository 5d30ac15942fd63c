"""The clouds suite, provider ``externalgrpc``: messages, Kubernetes' protobuf, and what the client makes of answers.

Where ours differs on purpose: a duration that is absent means the flag (upstream reads 0 s), an unknown state counts
as running and an unknown class as ``Other``, and an order that no group can take is refused without a call.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from tests.conformance.cases import Case, difference
from tests.conformance.clouds_views import DEFAULT_OPTIONS, options_in_force, quantities, template_of

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.externalgrpc.cloud import ExternalGrpcCloud
from kubetide.clouds.externalgrpc.config import grpc_config
from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS, encode
from kubetide.clouds.externalgrpc.readings import instance_of
from kubetide.clouds.externalgrpc.statuses import error_of
from kubetide.objects.node import Node
from kubetide.objects.protobuf_encoding import encode_message
from kubetide.ports.cloud import instance_id
from kubetide.ports.errors import CloudError, CloudUnsupported

_STATES = {"Running", "Creating", "Deleting"}
_CLASSES = {"OutOfResource", "Other"}


class Rule(NamedTuple):
    name: str
    reason: str


ABSENT_IS_DEFAULT = Rule("an absent duration means the flag", "upstream reads 0 s, and deletes nodes at once")
UNKNOWN_STATE = Rule("an unknown state runs", "a number that the protocol does not have says nothing")
UNKNOWN_CLASS = Rule("an unknown class is Other", "only class 1 says that another group may help")
NO_SUCH_ORDER = Rule("orders that no group can take", "sign and maximum are checked before a call is made")


def first_difference(case: Case) -> str | None:
    kind, given, expected = case["kind"], case["input"], case["expect"]
    return asyncio.run(_PLAYERS[kind](given, expected))


class _Provider:
    """A caller that gives the answers of a case, and notes what was sent."""

    def __init__(self, answers: dict[str, str], status: str = "") -> None:
        self.answers, self.status = answers, status
        self.sent: list[tuple[str, bytes]] = []

    async def __call__(self, method: str, request: Any) -> Any:
        self.sent.append((method, encode(request)))
        if self.status:
            raise error_of(method, re.sub("(?<=[a-z])(?=[A-Z])", "_", self.status).upper(), "recorded")
        message = MESSAGES[METHODS[method][1]]
        return message.FromString(bytes.fromhex(self.answers.get(method, "")))

    def of(self, method: str) -> list[str]:
        return [raw.hex() for name, raw in self.sent if name == method]


def _cloud(provider: _Provider) -> ExternalGrpcCloud:
    return ExternalGrpcCloud(provider, address="recorded")


async def _message(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    kind = MESSAGES[given["type"].rpartition(".")[2]]
    message = json_format.ParseDict(given["json"], kind())
    found = difference("hex", expected["hex"], encode(message).hex())
    if found:
        return found
    back = _json(kind.FromString(bytes.fromhex(expected["hex"])))
    return difference("decoded", _json(message), back)


async def _decode(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    try:
        message = MESSAGES[given["type"].rpartition(".")[2]].FromString(bytes.fromhex(given["hex"]))
    except (DecodeError, UnicodeDecodeError):
        return None if expected.get("error") else "expected a message, found an error"
    if expected.get("error"):
        return "expected an error"
    has_bytes = bool(getattr(message, "nodeBytes", b""))
    found = difference("json", expected["json"], _json(message))
    return found or difference("has_node_bytes", expected.get("has_node_bytes", has_bytes), has_bytes)


def _json(message: Any) -> Any:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


async def _node_bytes(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    return difference("hex", expected["hex"], encode_message(given["node"], "io.k8s.api.core.v1.Node").hex())


async def _pod_bytes(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    return difference("hex", expected["hex"], encode_message(given["pod"], "io.k8s.api.core.v1.Pod").hex())


async def _client_nodes(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    provider = _Provider({"NodeGroupNodes": given.get("response_hex", "")}, given.get("status", ""))
    try:
        answer = await provider("NodeGroupNodes", MESSAGES["NodeGroupNodesRequest"](id="g"))
    except CloudError as error:
        return difference("error_code", expected.get("error_code"), error.error_code)
    reported = sorted((_instance(instance_of(one)) for one in answer.instances), key=_order)
    expected_instances = sorted((_expected_instance(one) for one in expected["instances"]), key=_order)
    return difference("instances", expected_instances, reported)


def _instance(instance: Any) -> dict[str, Any]:
    error = instance.error and [
        instance.error.error_class,
        instance.error.error_code,
        instance.error.error_message,
    ]
    return {"id": instance.provider_id, "state": instance.state, "error": error}


def _expected_instance(one: dict[str, Any]) -> dict[str, Any]:
    status = one["status"] or {}
    state = status.get("state", "Running")
    error = None
    if "error_code" in status:
        known = status["error_class"] in _CLASSES
        error = [
            status["error_class"] if known else "Other",
            status["error_code"],
            status.get("error_message", ""),
        ]
    return {"id": one["id"], "state": state if state in _STATES else "Running", "error": error}


def _order(one: dict[str, Any]) -> bytes:
    return msgspec.json.encode(one, order="deterministic")


async def _client_template(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    provider = _Provider(
        {"NodeGroupTemplateNodeInfo": given.get("response_hex", "")}, given.get("status", "")
    )
    try:
        template = await _cloud(provider).template("g")
    except CloudUnsupported:
        return difference("not_implemented", expected.get("not_implemented"), True)
    except CloudError as error:
        if expected.get("error_code"):
            return difference("error_code", expected["error_code"], error.error_code)
        return None if expected.get("error") else f"expected no error, found {error}"
    if template is None:
        return difference("template", expected["template"], None)
    if expected.get("template") is None:
        return f"expected {expected}, found a template"
    expected_template = expected["template"] | {
        name: quantities(expected["template"][name]) for name in ("capacity", "allocatable")
    }
    return difference("template", expected_template, template_of(template)) or difference(
        "pods", expected["pods"], len(template.pods or ())
    )


async def _client_options(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    provider = _Provider({"NodeGroupGetOptions": given.get("response_hex", "")}, given.get("status", ""))
    try:
        found = await _cloud(provider).options("g")
    except CloudError as error:
        return difference("error_code", expected.get("error_code"), error.error_code)
    if expected.get("not_implemented"):
        return difference("options", None, found)
    wrong = difference("request", [expected["request_hex"]], provider.of("NodeGroupGetOptions"))
    if wrong or expected["options"] is None:
        return wrong or difference("options", None, found)
    reported = (given.get("response") or {}).get("nodeGroupAutoscalingOptions") or {}
    expected_options = expected["options"] | {
        "max_node_startup_time": DEFAULT_OPTIONS["max_node_startup_time"]
    }
    for field, name in (
        ("scaleDownUnneededDuration", "scale_down_unneeded_time"),
        ("scaleDownUnreadyDuration", "scale_down_unready_time"),
        ("MaxNodeProvisionDuration", "max_node_provision_time"),
    ):
        if field not in reported:
            expected_options[name] = DEFAULT_OPTIONS[name]
    return difference("options", expected_options, options_in_force(found))


class _OneNode:
    """The nodes of a cluster that has one."""

    problem = ""

    def __init__(self, node: Node) -> None:
        self.node = node

    def by_machine(self) -> dict[str, Node]:
        return {instance_id(self.node): self.node}


async def _client_group_for_node(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    """Play two refreshes in a row: upstream's two questions of one loop."""
    answer = MESSAGES["NodeGroupForNodeResponse"].FromString(bytes.fromhex(given.get("response_hex", "")))
    groups = MESSAGES["NodeGroupsResponse"](nodeGroups=[answer.nodeGroup])
    answers = {"NodeGroupForNode": given.get("response_hex", ""), "NodeGroups": encode(groups).hex()}
    provider = _Provider(answers, given.get("status", ""))
    raw = given["node"]
    node = msgspec.convert(
        {
            "metadata": {
                "name": raw["name"],
                "labels": raw.get("labels"),
                "annotations": raw.get("annotations"),
            },
            "spec": {"providerID": raw["provider_id"]},
        },
        Node,
    )
    cloud = ExternalGrpcCloud(provider, address="recorded", nodes=_OneNode(node))
    try:
        views = [await cloud.refresh() for _ in range(2)][1]
    except CloudError as error:
        if "error_code" in expected:
            return difference("error_code", expected["error_code"], error.error_code)
        return None if expected.get("error") else f"expected no error, found {error}"
    found = [one for one in views if one.id and one.instances]
    group = None
    if found:
        group = {
            "id": found[0].id,
            "min": found[0].min_size,
            "max": found[0].max_size,
            "debug": found[0].debug,
        }
    sent = provider.of("NodeGroupForNode")
    return (
        difference("group", expected["group"], group)
        or difference("request", expected["request_hex"], sent[0])
        or difference("calls", expected["calls_for_two_asks"], len(sent))
    )


async def _client_orders(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    delta, most = given["delta"], given["group_max"]
    groups = MESSAGES["NodeGroupsResponse"](nodeGroups=[{"id": "g", "maxSize": most}])
    provider = _Provider({"NodeGroups": encode(groups).hex()})
    cloud = _cloud(provider)
    for order, amount in ((cloud.increase_size, delta), (cloud.decrease_target_size, -delta)):
        try:
            await order("g", amount)
        except CloudError:
            continue
    possible = {"NodeGroupIncreaseSize": 0 < delta <= most, "NodeGroupDecreaseTargetSize": delta < 0}
    expected_calls = [[call["rpc"], call["hex"]] for call in expected["calls"] if possible[call["rpc"]]]
    found = [[name, raw.hex()] for name, raw in provider.sent if name in possible]
    return difference("calls", expected_calls, found)


async def _config(given: dict[str, Any], expected: dict[str, Any]) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bad.pem").write_text("not a certificate")
        try:
            found = grpc_config(given["yaml"].replace("DIR", folder))
        except CloudConfigError as error:
            return None if "error" in expected else f"expected no error, found {error}"
    if "error" in expected:
        return f"expected the error {expected['error']}"
    return difference(
        "config", expected, {"grpc_timeout_s": found.timeout / 1e9, "tls": found.tls is not None}
    )


_PLAYERS = {
    "message": _message,
    "decode": _decode,
    "node_bytes": _node_bytes,
    "pod_bytes": _pod_bytes,
    "client_nodes": _client_nodes,
    "client_template": _client_template,
    "client_options": _client_options,
    "client_group_for_node": _client_group_for_node,
    "client_orders": _client_orders,
    "config": _config,
}
