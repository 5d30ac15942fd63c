"""Recorded requests, values and errors of upstream's metrics clients, compared with those of ours.

A plain HTTP server answers as the recording's transport did (tests/conformance/data/horizontal).
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest
from aiohttp import web
from tests.cluster.answering import answering
from tests.conformance import horizontal
from tests.conformance.cases import Selection, case_files, selected_cases
from tests.conformance.horizontal_world import World

from kubetide.cluster import Connection, HttpCluster, HttpCustomMetrics, HttpExternalMetrics, HttpMetrics
from kubetide.ports.errors import MetricsError
from kubetide.runtime.timing.clock import run_real

DATA = Path(__file__).parents[1] / "conformance" / "data" / "horizontal"
NOT_SERVED = {"error": {"code": 404, "text": "404 page not found\n"}}
GROUP = {
    "versions": [{"version": "v1beta1"}, {"version": "v1beta2"}],
    "preferredVersion": {"version": "v1beta2"},
}
PLURALS = {"Deployment": "deployments", "Ingress": "ingresses", "Pod": "pods", "Service": "services"}
FILES = [path for path in case_files([DATA]) if path.name != "vectors-sequence.json.gz"]


class Recorded:
    """The servers of metrics of one case at a time, and what they were asked."""

    def __init__(self):
        self.metrics = {}
        self.requests = []

    async def answer(self, request):
        parts = request.path.strip("/").split("/")
        # Discovery is not among what was recorded.
        if parts == ["apis", "custom.metrics.k8s.io"]:
            return web.json_response(GROUP)
        if parts == ["apis", "custom.metrics.k8s.io", "v1beta2"]:
            return web.json_response({"resources": []})
        query = f"?{urlencode(sorted(request.query.items()))}" if request.query else ""
        self.requests.append(f"{request.method} {request.path}{query}")
        script = self.script(parts) or NOT_SERVED
        error = script.get("error")
        if error is None:
            return web.json_response({"items": script.get("items") or []})
        if error.get("status"):
            return web.json_response({"kind": "Status", **error["status"]}, status=error["code"])
        return web.Response(text=error["text"], status=error["code"])

    def script(self, parts):
        if parts[1] == "metrics.k8s.io":
            return self.metrics.get("resource")
        of_pods = parts[1] == "custom.metrics.k8s.io" and parts[5:7] == ["pods", "*"]
        source = "external" if parts[1] == "external.metrics.k8s.io" else "pods" if of_pods else "object"
        return (self.metrics.get(source) or {}).get(parts[-1])


class OverHttp(World):
    """A recorded world whose metrics are read over HTTP."""

    def __init__(self, case, server, client, clock):
        super().__init__(case)
        self.server = server
        self.usage = HttpMetrics(client, clock)
        self.custom = HttpCustomMetrics(client, clock, plural_of=lambda _, kind: PLURALS[kind])
        self.external = HttpExternalMetrics(client)

    def start(self, step):
        super().start(step)
        self.server.metrics = step.get("metrics") or {}
        self.server.requests.clear()

    async def pod_samples(self, namespace="", labels=""):
        if not namespace:
            raise MetricsError("the recordings list samples by namespace and selector only")
        return await self.usage.pod_samples(namespace, labels)

    async def pod_values(self, metric, **asked):
        return await self.custom.pod_values(metric, **asked)

    async def object_value(self, metric, **asked):
        return await self.custom.object_value(metric, **asked)

    async def external_values(self, metric, **asked):
        return await self.external.external_values(metric, **asked)


def requests_of(case):
    """The requests for metrics that were recorded."""
    return {request for request in case["expect"]["requests"] if "metrics.k8s.io/" in request}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".")[0].removeprefix("vectors-"))
def test_recorded_cases_over_http(path):
    """Every reconcile of one step that reads metrics asks what was recorded, and comes out the same."""
    cases = list(selected_cases(horizontal, [path], Selection(single_step=True)))
    cases = [case for case in cases if requests_of(case)]
    assert cases
    found = {}

    async def main(clock):
        server = Recorded()
        async with answering(server.answer) as url, HttpCluster(Connection(url), clock) as client:
            for case in cases:
                different = await horizontal.play(
                    case, world_of=lambda case: OverHttp(case, server, client, clock)
                )
                if different is None and set(server.requests) != requests_of(case):
                    different = f"asked {sorted(server.requests)}, not {sorted(requests_of(case))}"
                if different:
                    found[case["id"]] = different

    run_real(main)
    assert found == {}
