"""An external scaler of KEDA's protocol over a list in Redis, as a small program of its own would be."""

from __future__ import annotations

from contextlib import asynccontextmanager

import grpc
from grpc import aio

from kubetide.elastic.keda.messages import MESSAGES, METHODS, SERVICE


class QueueScaler:
    """Counts a list: active above ``activation`` items, ``target`` items a pod, both of the trigger's metadata."""

    def __init__(self, length):
        self.length, self.asked, self.error = length, [], ""

    async def IsActive(self, request, context):  # the protocol's name
        await self.check(context)
        data = request.scalerMetadata
        self.asked.append((request.namespace, request.name, dict(data)))
        active = self.length(data["list"]) > int(data.get("activation", "0"))
        return MESSAGES["IsActiveResponse"](result=active)

    async def GetMetricSpec(self, request, context):
        await self.check(context)
        target = float(request.scalerMetadata["target"])
        return MESSAGES["GetMetricSpecResponse"](
            metricSpecs=[MESSAGES["MetricSpec"](metricName="waiting", targetSizeFloat=target)]
        )

    async def GetMetrics(self, request, context):
        await self.check(context)
        waiting = self.length(request.scaledObjectRef.scalerMetadata["list"])
        value = MESSAGES["MetricValue"](metricName=request.metricName, metricValue=waiting)
        return MESSAGES["GetMetricsResponse"](metricValues=[value])

    async def check(self, context):
        if self.error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, self.error)


@asynccontextmanager
async def serving(scaler):
    """Serve a scaler on a free port; yield its address."""
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            getattr(scaler, name),
            request_deserializer=MESSAGES[request].FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
        for name, (request, _) in METHODS.items()
    }
    server = aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
