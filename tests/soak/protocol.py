"""The cloud of a world behind upstream's externalgrpc protocol, some calls of which fail, or lose their answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.soak.scenarios import Draw

from kubetide.clouds.externalgrpc.cloud import ExternalGrpcCloud
from kubetide.clouds.externalgrpc.joined_nodes import WatchedNodes
from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS, encode
from kubetide.clouds.externalgrpc.service import ProviderService
from kubetide.clouds.externalgrpc.statuses import error_of, status_of
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError
from kubetide.simulate.world import World

CALLS = ("refresh", "increase_size", "decrease_target_size", "delete_nodes")
"""What the node loop asks of a cloud."""
_FAILING = 0.003
"""Of each call, so that one refresh in ten or so meets a failure."""


def behind_protocol(world: World, draw: Draw) -> Cloud:
    """Return the cloud of a world as a client of the protocol sees it."""
    # Its calls as they are now: others take their place later.
    cloud = world.cloud
    own: Any = SimpleNamespace(gpu_label=cloud.gpu_label, gpu_types=cloud.gpu_types)
    for name in CALLS:
        setattr(own, name, getattr(cloud, name))
    methods = ProviderService(own).methods()

    async def call(method: str, request: Any) -> Any:
        if draw.chance(_FAILING):
            raise error_of(method, "UNAVAILABLE", "as drawn")
        sent, received = (MESSAGES[name] for name in METHODS[method])
        try:
            answer = await methods[method](sent.FromString(encode(request)))
        except CloudError as error:
            raise error_of(method, status_of(error), str(error)) from error
        if draw.chance(_FAILING):
            raise error_of(method, "DEADLINE_EXCEEDED", "as drawn")
        return received.FromString(encode(answer))

    return ExternalGrpcCloud(call, address="the world", nodes=WatchedNodes(world.nodes), now=world.clock.now)
