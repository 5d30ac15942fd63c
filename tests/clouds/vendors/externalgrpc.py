"""A provider in another process behind its port of calls, as the battery of faults needs it: JSON stands for protobuf.

What serves the protocol checks sizes and minima itself, as it says: a client's orders may rest on what it saw before.
"""

from __future__ import annotations

from google.protobuf import json_format
from tests.clouds.fakes.server import Answer
from tests.clouds.vendors.vendor import Vendor

from kubetide.clouds.common.rest import NoAnswer, Request
from kubetide.clouds.externalgrpc.cloud import ExternalGrpcCloud
from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS
from kubetide.clouds.externalgrpc.readings import template_message
from kubetide.clouds.externalgrpc.statuses import error_of
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node
from kubetide.ports.cloud import NodeTemplate

_STATUSES = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "UNIMPLEMENTED",
    409: "FAILED_PRECONDITION",
    429: "UNAVAILABLE",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
"""What gRPC makes of a status of HTTP, as from a proxy; 409 is that of the fake's own refusals."""
_FUTURE = "FUTURE_VALUE", 9
"""A value of an enumeration that a newer server has, as the battery names it and as it is on the wire."""


class FakeProvider:
    """Answers the methods of the protocol over a fleet; ``specs`` are its groups, which never vanish from its list."""

    def __init__(self, fleet):
        self.fleet, self.specs = fleet, []

    def __call__(self, asked):
        method, given = asked.path.removeprefix("/"), asked.body or {}
        if "id" in given and given["id"] not in self.fleet.groups:
            return _refused(f"no node group {given['id']}")
        return getattr(self, f"_{method}")(given)

    def _GPULabel(self, _given):
        return Answer({"label": "example.com/gpu"})

    def _GetAvailableGPUTypes(self, _given):
        return Answer({})

    def _Refresh(self, _given):
        return Answer({})

    def _NodeGroups(self, _given):
        groups = [{"id": one.name, "minSize": one.min_size, "maxSize": one.max_size} for one in self.specs]
        return Answer({"nodeGroups": groups})

    def _NodeGroupTargetSize(self, given):
        return Answer({"targetSize": self.fleet.groups[given["id"]].target})

    def _NodeGroupNodes(self, given):
        found = [
            {
                "id": f"x://{one.name}",
                "status": {"instanceState": f"instance{self.fleet.state(one)}"},
            }
            for one in self.fleet.machines(given["id"])
        ]
        return Answer({"instances": found})

    def _NodeGroupGetOptions(self, given):
        return Answer({"nodeGroupAutoscalingOptions": given["defaults"]})

    def _NodeGroupTemplateNodeInfo(self, given):
        node = Node(metadata=ObjectMeta(name=f"new-{given['id']}"))
        return Answer(json_format.MessageToDict(template_message(NodeTemplate(node=node))))

    def _PricingNodePrice(self, _given):
        return Answer({"price": 0.5})

    def _NodeGroupIncreaseSize(self, given):
        return self._size(given["id"], given["delta"])

    def _NodeGroupDecreaseTargetSize(self, given):
        there = len(self.fleet.living(given["id"]))
        if self.fleet.groups[given["id"]].target + given["delta"] < there:
            return _refused(f"{there} nodes exist")
        return self._size(given["id"], given["delta"])

    def _size(self, group, delta):
        size = self.fleet.groups[group].target + delta
        if size > self._spec(group).max_size:
            return _refused(f"size {size} is too large")
        self.fleet.set_target(group, size)
        return Answer({})

    def _NodeGroupDeleteNodes(self, given):
        names = [one["providerID"].removeprefix("x://") for one in given["nodes"]]
        if self.fleet.groups[given["id"]].target - len(names) < self._spec(given["id"]).min_size:
            return _refused("min size reached")
        for name in names:
            if not self.fleet.end(given["id"], name):
                return _refused(f"{name} is not there")
        return Answer({})

    def _spec(self, name):
        return next(one for one in self.specs if one.name == name)


def _refused(message):
    return Answer({"message": message}, 409)


class ExternalGrpc(Vendor):
    """Groups of a provider that checks what it is asked for; protobuf has no answer of another shape than the protocol's."""

    def make_fake(self, page):
        return FakeProvider(self.fleet)

    def named(self, *specs):
        super().named(*specs)
        self.fake.specs = self.nodes
        return self

    def connect(self):
        """Return a provider that knows nothing yet."""
        return ExternalGrpcCloud(self.call, address="test")

    async def call(self, method, message):
        """Make a call, as over gRPC."""
        body = json_format.MessageToJson(message).encode()
        try:
            answer = await self.send(Request("POST", f"{self.address}/{method}", body=body))
        except NoAnswer as error:
            raise error_of(method, "DEADLINE_EXCEEDED", str(error)) from error
        if answer.status >= 300:
            text = answer.body.decode(errors="replace")
            raise error_of(method, _STATUSES.get(answer.status, "UNKNOWN"), text)
        try:
            text = answer.body.decode().replace(f'"{_FUTURE[0]}"', str(_FUTURE[1]))
            found = MESSAGES[METHODS[method][1]]()
            return json_format.Parse(text, found, ignore_unknown_fields=True)
        except (json_format.ParseError, ValueError, RecursionError) as error:
            raise error_of(method, "INTERNAL", f"the answer is no {METHODS[method][1]}") from error

    def node_id(self, _group, machine):
        return f"x://{machine}"
