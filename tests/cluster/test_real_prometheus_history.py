"""History of usage from a Prometheus as it is installed, which was given three days of samples."""

from __future__ import annotations

import subprocess
import time

import pytest
from tests.cluster.prometheus_server import PASSWORD, USER, exporter, find_prometheus, running_prometheus
from tests.vertical.recommender.running import pod, vpa

from kubetide.cluster.metric_ports.prometheus import PrometheusClient
from kubetide.ports.errors import MetricsError
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.runtime.prometheus import prometheus_access
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import hours
from kubetide.vertical.recommender.controller.history import HistoryReader
from kubetide.vertical.recommender.decide import absorb, decide
from kubetide.vertical.recommender.decision import Outcomes
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.facts.history import HistoryError
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State

PROMETHEUS = find_prometheus()
PROMTOOL = None if PROMETHEUS is None else PROMETHEUS.parent / "promtool"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PROMTOOL is None or not PROMTOOL.exists(), reason="not there: prometheus and promtool"
    ),
]

MIB = 1 << 20
HOURS = 72
STEP = 600
"""Seconds between two samples."""

FLAGS = {
    "storage": "prometheus",
    "prometheus_cadvisor_job_name": "kubelet",
    "container_pod_name_label": "pod",
    "container_name_label": "container",
    "metric_for_pod_labels": "kube_pod_labels[8d]",
    "pod_label_prefix": "label_",
    "pod_namespace_label": "namespace",
    "pod_name_label": "pod",
}


def lines(end):
    """Yield OpenMetrics: two pods, one of which ended a day ago, half a core and 300 MiB each."""
    begin = end - HOURS * 3600
    runs = {"web-1": (begin, end), "web-0": (begin, end - 24 * 3600)}
    yield "# TYPE container_cpu_usage_seconds counter"
    for name, (first, last) in runs.items():
        where = f'job="kubelet",namespace="shop",pod="{name}",container="app"'
        for at in range(first, last, STEP):
            yield f"container_cpu_usage_seconds_total{{{where}}} {(at - first) * 0.5} {at}"
    yield "# TYPE container_memory_working_set_bytes gauge"
    for name, (first, last) in runs.items():
        where = f'job="kubelet",namespace="shop",pod="{name}",container="app"'
        for at in range(first, last, STEP):
            yield f"container_memory_working_set_bytes{{{where}}} {300 * MIB} {at}"
    yield "# TYPE kube_pod_labels gauge"
    for name, (first, last) in runs.items():
        for at in range(first, last, STEP):
            yield f'kube_pod_labels{{namespace="shop",pod="{name}",label_app="web"}} 1 {at}'
    yield "# TYPE unowned gauge"
    yield f'unowned{{job="kubelet",pod="web-1",container="app"}} 1 {end - 60}'
    yield "# EOF"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A guarded one, whose samples end now."""
    folder = tmp_path_factory.mktemp("prometheus")
    text = folder / "samples.txt"
    text.write_text("\n".join(lines(int(time.time()))) + "\n")
    subprocess.run(
        [PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"],
        check=True,
        capture_output=True,
    )
    with exporter() as scraped, running_prometheus(folder, scraped, guarded=True) as running:
        yield running


def history(server, *, namespace="", user=USER, **flags):
    """Return what a reader finds with these flags, and the time."""

    async def run(clock):
        access = RunSettings(
            prometheus_url=server.url,
            prometheus_user=user,
            prometheus_password=PASSWORD,
            prometheus_insecure=True,
        )
        connection, basic = prometheus_access(access)
        async with PrometheusClient(
            connection, clock, basic=basic, patience=access.prometheus_query_timeout
        ) as client:
            reader = HistoryReader(client, clock, Settings(**(FLAGS | flags)), namespace)
            return await reader.read(), clock.now()

    return run_real(run)


def test_history_is_what_prometheus_was_given(server):
    """CPU as a rate an hour, memory and labels, of pods that run and of deleted ones."""
    pods, _ = history(server, namespace="shop")
    assert [(one.pod, one.labels) for one in pods] == [("web-0", {"app": "web"}), ("web-1", {"app": "web"})]
    for one, expected in zip(pods, (48, 72), strict=True):
        usage = one.containers["app"]
        assert abs(usage.cpu.shape[1] - expected) <= 1
        assert set(usage.cpu[1].tolist()) <= {499, 500}
        assert set(usage.memory[1].tolist()) == {300 * MIB}
        assert (usage.cpu[0][1:] - usage.cpu[0][:-1] == hours(1)).all()


def test_the_first_recommendation_counts_it(server):
    """A recommender that has just begun recommends from three days of history."""
    pods, now = history(server)
    state = State(Settings(**FLAGS))
    state.apply(Delta(at=now, history=pods, vpas=[vpa()], pods=[pod("web-1")]))
    absorb(state, decide(state, now), Outcomes(), now)
    [found] = state.vpas["shop", "web"].stored.read().recommendation.container_recommendations
    # The bucket of half a core and 15 %; the lower bound is as sure as 119 samples make it.
    assert (found.target["cpu"], found.lower_bound["cpu"]) == ("587m", "573m")
    # 300 MiB fall into the bucket that ends at 330,659,541 bytes; and 15 %.
    assert found.target["memory"] == "380258472"


def test_another_namespace_has_none(server):
    """The matcher of the namespace applies; labels come from all namespaces, as upstream's."""
    pods, _ = history(server, namespace="other")
    assert not any(one.containers for one in pods)


def test_no_history_is_an_error_in_words(server):
    """A series without a label that is needed, a query that is none, and a user that is not known."""
    with pytest.raises(HistoryError, match="no namespace label in the series"):
        history(server, history_memory_metric="unowned", history_length="1h")
    with pytest.raises(MetricsError, match=r"bad_data: .*parse error"):
        history(server, metric_for_pod_labels="}")
    with pytest.raises(MetricsError, match="401 Unauthorized"):
        history(server, user="nobody")
