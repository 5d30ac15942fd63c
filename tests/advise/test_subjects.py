"""The report of a cluster over HTTPS, of a Prometheus, and of a scenario, as a user gets it."""

from __future__ import annotations

import json

import pytest
from aiohttp import web
from click.testing import CliRunner
from tests.cluster.served import served

from kubetide.advise import Prices
from kubetide.advise.subjects import Terms, report_of_connection
from kubetide.cli.main import cli
from kubetide.objects.kinds import DEPLOYMENTS, POD_METRICS, PODS, REPLICA_SETS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.metrics import ContainerMetrics, PodMetrics
from kubetide.ports.errors import KubetideError
from kubetide.runtime.configuration.config import make_config
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import Listener
from kubetide.testing import builders
from kubetide.units.time import format_rfc3339, seconds

HOME = {"namespace": "default"}
SCENARIO = """
name: small
duration: 20m
loops: [horizontal]
nodeGroups:
  - {name: general, instanceType: m5.xlarge, min: 1, max: 2}
services:
  - deployment: web
    cpuSecondsPerRequest: 0.01
    sloLatency: 250ms
    maxQueue: 5s
    load:
      daily: {low: 20, peak: 20, peakAt: "12:00"}
manifests:
  - |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          containers:
            - name: app
              image: web:1
              resources: {requests: {cpu: "1", memory: 1Gi}}
"""


class Usage:
    """The metrics API of the embedded server."""

    def __init__(self, clock):
        self.clock = clock

    def pod_metrics(self):
        used = ContainerMetrics(name="app", usage={"cpu": "300m", "memory": "400000000"})
        return [
            PodMetrics(
                api_version=POD_METRICS.api_version,
                kind=POD_METRICS.kind,
                metadata=ObjectMeta(name="web-1-x", namespace="default"),
                timestamp=format_rfc3339(self.clock.now()),
                window="15s",
                containers=(used,),
            )
        ]


async def build(cluster):
    web_made = await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=1), **HOME)
    body = builders.replica_set("web-1", replicas=1)
    body["metadata"]["ownerReferences"] = [builders.owner_reference(web_made, controller=True)]
    made = await cluster.create(REPLICA_SETS, body, **HOME)
    pod = builders.pod("web-1-x", labels={"app": "web"}, cpu="2", memory="4Gi")
    pod["metadata"]["ownerReferences"] = [builders.owner_reference(made, controller=True)]
    pod["spec"]["containers"][0]["name"] = "app"
    await cluster.create(PODS, pod, **HOME)
    await cluster.patch(PODS, "web-1-x", {"status": {"phase": "Running"}}, subresource="status", **HOME)


def reported(**settings):
    """Make the report of a served cluster; each setting is of `kubetide run`."""

    async def main(clock):
        config = make_config([("--", {name.replace("_", "-"): value for name, value in settings.items()})])
        async with served(clock, metrics=Usage(clock)) as (cluster, _, connection):
            await build(cluster)
            before = (await cluster.list(PODS)).resource_version
            found = await report_of_connection(
                clock, connection, config, Terms(Prices(), "", lambda _: None), seconds(0)
            )
            # Whatever is written moves the version of all lists.
            assert (await cluster.list(PODS)).resource_version == before
            return found

    return run_real(main)


def test_a_cluster_without_our_controllers_is_enough():
    """Pods, their owners and the metrics API make the report, and nothing is written."""
    found = reported()
    [row] = found.rows
    assert (row.namespace, row.kind, row.workload, row.container) == ("default", "Deployment", "web", "app")
    assert (row.cpu.request, row.cpu.max, row.memory.max) == (2000, 300, 400_000_000)
    assert row.cpu.recommended < 500
    assert (row.risk, found.source) == ("high", "metrics API, 0s")


class Series:
    """A Prometheus that answers range queries with one container of two days."""

    def __init__(self, **labels):
        self.labels = labels
        self.asked = []

    async def answer(self, request):
        form = await request.post()
        self.asked.append(form["query"])
        start, end, step = (float(form[name]) for name in ("start", "end", "step"))
        value = "400000000" if "memory" in form["query"] else "0.3"
        points = [[start + step * at, value] for at in range(int((end - start) / step) + 1)]
        series = [{"metric": self.labels, "values": points}]
        return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": series}})


def from_prometheus(series, **settings):
    async def main(clock):
        app = web.Application()
        app.router.add_post("/api/v1/query_range", series.answer)
        listener = Listener(app)
        await listener.listen("127.0.0.1", 0)
        config = make_config(
            [("--", {"prometheus-url": f"http://127.0.0.1:{listener.address[1]}", **settings})]
        )
        try:
            async with served(clock) as (cluster, _, connection):
                await build(cluster)
                return await report_of_connection(
                    clock, connection, config, Terms(Prices(), "", lambda _: None), seconds(0)
                )
        finally:
            await listener.close()

    return run_real(main)


def test_prometheus_has_the_history():
    """Two queries, by the names of metrics and labels that are given; no labels of pods are needed."""
    series = Series(namespace="default", pod="web-1-x", container="app")
    found = from_prometheus(
        series,
        **{
            "history-length": "2d",
            "prometheus-cadvisor-job-name": "kubelet",
            "container-pod-name-label": "pod",
            "container-name-label": "container",
        },
    )
    [row] = found.rows
    assert (row.samples, row.history_s, row.cpu.max) == (49, 2 * 86400, 300)
    assert row.because == ("2d of history, less than a week",)
    assert len(series.asked) == 2
    assert all('job="kubelet"' in query for query in series.asked)


def test_labels_that_do_not_fit_are_named():
    """The error says which label is missing, and by which flags labels are named."""
    with pytest.raises(KubetideError, match=r"no pod_name label in the series .*--container-pod-name-label"):
        from_prometheus(Series(namespace="default", pod="web-1-x", container="app"))


def test_a_scenario_is_played(tmp_path):
    """In every form, to the terminal or into a file; the warm-up does not count."""
    path, out = tmp_path / "small.yaml", tmp_path / "savings.html"
    path.write_text(SCENARIO)

    def run(*words):
        return CliRunner().invoke(cli, ["advise", str(path), *words], catch_exceptions=False)

    table = run()
    assert "default/web" in table.output
    assert "scenario small, 20m0s, seed 1: requests cost" in table.output
    [row] = json.loads(run("-o", "json").stdout)["rows"]
    assert (row["pods"], row["cpu"]["request"], row["history_s"]) == (2, 1000, 19 * 60)
    assert 90 <= row["cpu"]["p50"] <= 110
    assert run("-o", "html", "--file", str(out)).output.endswith("savings.html: 1 containers\n")
    assert "default/web" in out.read_text()
    prices = tmp_path / "prices.yaml"
    prices.write_text("cpu: 1\nmemory: 0\n")
    assert json.loads(run("-o", "json", "--prices", str(prices)).stdout)["cost"] == 2 * 730
    with pytest.raises(KubetideError, match="used anything in namespace elsewhere"):
        run("-n", "elsewhere")
