"""kube-state-metrics on a plane, and what cAdvisor would say of the pods of a town."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
from tests.cluster.prometheus_server import Exporter
from tests.plane.running import Plane, Programs, free_ports, is_healthy
from tests.plane.towns import Town
from tools.plane.build import find

from kubetide.units.time import milliseconds, to_seconds

_RESOURCES = (
    "daemonsets,deployments,horizontalpodautoscalers,nodes,poddisruptionbudgets,pods,replicasets,statefulsets"
)
_POLL = milliseconds(200)


@dataclass(frozen=True)
class StateMetrics:
    """Where it can be scraped."""

    port: int


def skip_without_state_metrics():
    if find("kube-state-metrics") is None:
        pytest.skip("not built: kube-state-metrics (make control-plane)")


@contextmanager
def state_metrics(plane: Plane):
    """Run kube-state-metrics on a plane, as its project builds it. Raises PlaneError with the end of its log."""
    port, telemetry = free_ports(2)
    with ExitStack() as stack:
        programs = Programs(stack, plane.folder)
        programs.start(
            "kube-state-metrics",
            (
                f"--kubeconfig={plane.kubeconfig}",
                "--host=127.0.0.1",
                f"--port={port}",
                "--telemetry-host=127.0.0.1",
                f"--telemetry-port={telemetry}",
                f"--resources={_RESOURCES}",
                "--metric-labels-allowlist=nodes=[*]",
            ),
        )
        programs.wait("kube-state-metrics answers", lambda: is_healthy(port))
        yield StateMetrics(port)


async def count_usage(place: Town, reported: Exporter) -> None:
    """Let an exporter say how much CPU time each container of the town has had, as cAdvisor does."""
    before = place.clock.monotonic()
    while True:
        await place.clock.sleep(_POLL)
        now = place.clock.monotonic()
        there = {}
        for (namespace, name), pod in place.pods.objects.items():
            for container in pod.spec.containers or ():
                milli = place.load.of(pod, container.name)
                if milli is not None:
                    labels = f'namespace="{namespace}",pod="{name}",container="{container.name}"'
                    series = f"container_cpu_usage_seconds_total{{{labels}}}"
                    there[series] = reported.series.get(series, 0.0) + milli / 1000 * to_seconds(now - before)
        reported.series.clear()
        reported.series.update(there)
        before = now
