"""Dashboards and alert rules: as the chart ships them, and against a Prometheus that scraped ``kubetide run``."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from urllib.parse import urlencode

import aiohttp
import pytest
import yaml
from tests.cli.test_run import PATIENCE_S, Busy, a_busy_deployment, line_with, running
from tests.cluster.prometheus_server import Exporter, find_prometheus, running_prometheus
from tests.cluster.served import TOKEN, served
from tests.docs.tables import DOCS
from tests.plane.running import free_ports
from tools.dashboards import DASHBOARDS, FOLDER, dashboard
from tools.manifests import CHART, RenderError, render

from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, NODES, PODS, VPAS
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.vertical.definitions import definitions

RULES = (CHART / "alerts.yaml").read_text(encoding="utf-8")
ALERTS = {rule["alert"]: rule for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]}
QUERIES = sorted({query for one in DASHBOARDS.values() for panel in one.panels for query, _ in panel.queries})
NAME = re.compile(
    r"\b(?:kubetide|cluster_autoscaler|horizontal_pod_autoscaler|leader_election|rest_client"
    r"|vpa_(?:recommender|updater|admission_controller|quality))_\w+"
)

EMPTY = {
    'error!="none"': "every HPA can be evaluated",
    "cluster_autoscaler_scaled_up_nodes_total": "advice buys nothing",
    "cluster_autoscaler_unremovable_nodes_count": "no node is a candidate",
    "kubetide_node_time_to_ready_seconds": "no node joined",
    "kubetide_node_template_error_ratio": "no node joined",
    "rest_client_request_retries_total": "no request was sent again",
    "rest_client_rate_limiter_duration_seconds_count": "no request had to wait",
    'kubetide_decisions_total{loop="updater"}': "advice updates no pod",
    "vpa_updater_failed_": "advice changes no pod",
    "vpa_admission_controller_": "there is no webhook",
    "vpa_quality_": "the pod under a VPA has no usage",
    "kubetide_objects_not_understood": "everything is understood",
}
"""Series that such a run need not report, with the reason."""


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_files_are_what_the_tables_give(name):
    """`python -m tools.dashboards` has been run since the tables were changed."""
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == dashboard(name)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_do_not_overlap(name):
    """Each panel has a place and a number of its own, within the 24 columns of Grafana."""
    panels = json.loads(dashboard(name))["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_only_documented_series_are_queried():
    """Each name in a query or rule is in docs/metrics.md."""
    reported = set(
        re.findall(r"^\| `(\w+)` \|", (DOCS / "metrics.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    asked = set(NAME.findall(" ".join([*QUERIES, *(rule["expr"] for rule in ALERTS.values())])))
    assert {
        re.sub(r"_(bucket|count)$", "", name) if name not in reported else name for name in asked
    } <= reported


def test_each_alert_has_a_heading():
    """The page has a heading for each rule and no other, in the spelling that the rule's link leads to."""
    page = (DOCS / "alerts.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (\w+)$", page, re.MULTILINE)) == set(ALERTS)
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook_url"] == f"RUNBOOKS#{name.lower()}"
        assert f"`{rule['expr']}` for {rule['for']}; {rule['labels']['severity']}." in page


def test_the_chart_ships_them_when_asked(rendered):
    """Off by default; a ConfigMap a dashboard with the sidecar's label, and a PrometheusRule with links that lead somewhere."""
    assert {one["kind"] for one in rendered()}.isdisjoint({"PrometheusRule"})
    assert not [one for one in rendered() if "dashboard" in one["metadata"]["name"]]
    address = "https://docs.example.com/alerts"
    objects = rendered(
        "--set=dashboards.enabled=true", "--set=alerts.enabled=true", f"--set=alerts.runbooks={address}"
    )
    maps = [one for one in objects if "-dashboard-" in one["metadata"]["name"]]
    assert {one["metadata"]["labels"]["grafana_dashboard"] for one in maps} == {"1"}
    shipped = {key: text for one in maps for key, text in one["data"].items()}
    assert {key: json.loads(text) for key, text in shipped.items()} == {
        f"kubetide-{name}.json": json.loads(dashboard(name)) for name in DASHBOARDS
    }
    (rule,) = [one for one in objects if one["kind"] == "PrometheusRule"]
    assert rule["spec"] == yaml.safe_load(RULES.replace("RUNBOOKS", address))


def test_alerts_need_to_know_where_the_page_is(helm):
    """A link that leads nowhere is refused before it is installed."""
    with pytest.raises(RenderError, match=r"alerts\.runbooks"):
        render(helm, "--set=alerts.enabled=true")


async def a_town(cluster, clock):
    """A node with two busy pods under an HPA, one under a VPA, and a pod that fits nowhere."""
    for one in definitions():
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, one)
    await cluster.create(NODES, builders.node("one", labels={"group": "general"}))
    await a_busy_deployment(cluster, clock)
    await cluster.create(DEPLOYMENTS, builders.deployment("cart"), namespace="default")
    await cluster.create(PODS, builders.pod("cart-0", labels={"app": "cart"}), namespace="default")
    running_now = {"status": {"phase": "Running"}}
    await cluster.patch(PODS, "cart-0", running_now, namespace="default", subresource="status")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"}
    body = {
        "apiVersion": VPAS.api_version,
        "kind": VPAS.kind,
        "metadata": {"name": "cart"},
        "spec": {"targetRef": target},
    }
    await cluster.create(VPAS, body, namespace="default")
    await cluster.create(PODS, builders.pod("huge", cpu="3900m", memory="15Gi"), namespace="default")


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Prometheus's answers to each query, once two processes have run for some ticks: one advises on all, one acts on pods."""
    if find_prometheus() is None:
        pytest.skip("not there: prometheus (KUBETIDE_PROMETHEUS)")
    folder = tmp_path_factory.mktemp("monitoring")
    ports = free_ports(2)
    home = folder / "prometheus"
    home.mkdir()
    with running_prometheus(home, *(Exporter(port, {}) for port in ports)) as prometheus:

        async def main(clock):
            async with served(clock, metrics=Busy(clock, ["web-0", "web-1"])) as (
                cluster,
                server,
                connection,
            ):
                config = folder / "kubeconfig"
                authority = connection.authority.encode()
                write_kubeconfig(config, kubeconfig(server.url, token=TOKEN, authority=authority))
                await a_town(cluster, clock)
                advising = (
                    "--controllers=horizontal,nodes,recommender,updater",
                    "--cloud-provider=labels",
                    "--node-group-label=group",
                    "--nodes=1:3:general",
                    "--emit-per-nodegroup-metrics",
                    "--scan-interval=300ms",
                    "--recommender-interval=300ms",
                    "--updater-interval=300ms",
                    "--horizontal-pod-autoscaler-sync-period=300ms",
                    f"--address=127.0.0.1:{ports[0]}",
                )
                acting = (
                    "--horizontal-pod-autoscaler-sync-period=300ms",
                    "--act",
                    "--adopt-hpas-after=0s",
                    f"--address=127.0.0.1:{ports[1]}",
                )
                async with (
                    running(config, folder / "advising", *advising) as first,
                    running(config, folder / "acting", *acting) as second,
                ):
                    await line_with(first, "health and metrics on")
                    await line_with(second, "scaled from 2 to 4")
                    found = await settled(prometheus.url)
                    for process in (first, second):  # what they say on the way out is the business of others
                        process.kill()
                        await process.wait()
                    return found

        yield run_real(main)


async def settled(url):
    """Asks until every query that needs no explanation has an answer, or the time is up; returns what each said."""
    names = sorted({name for rule in ALERTS.values() for name in NAME.findall(rule["expr"])})
    found = {}
    async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE_S):
        for _ in range(30):
            for query in (*QUERIES, *names):
                concrete = re.sub(r'"\$\w+"', '".*"', query.replace("$__rate_interval", "1m"))
                async with session.get(f"{url}/api/v1/query?{urlencode({'query': concrete})}") as answer:
                    found[query] = await answer.json()
            if not [query for query in found if not found[query]["data"]["result"] and not excused(query)]:
                break
            await asyncio.sleep(0.5)
    return found


def excused(query):
    return [series for series in EMPTY if series in query]


@pytest.mark.slow
def test_every_query_has_data_or_an_explanation(answers):
    """A panel is empty only for what such a run does not do; every query is one that Prometheus understands."""
    assert {answer["status"] for answer in answers.values()} == {"success"}
    empty = {query for query, answer in answers.items() if not answer["data"]["result"]}
    assert not {query for query in empty if not excused(query)}
    needless = {series for series in EMPTY if not any(series in query for query in empty)}
    needless -= {series for series in EMPTY if series.startswith("rest_client_")}  # a busy machine has them
    assert not needless


FIRES = {
    "KubetideAbsent": ([], ["kubetide_clock_skew_seconds 0x60"]),
    "KubetideLoopStalled": (
        ['kubetide_loop_last_tick_timestamp_seconds{loop="nodes"} 0x60'],
        ['kubetide_loop_last_tick_timestamp_seconds{loop="nodes"} 0+60x60'],
    ),
    "KubetideLoopFailing": (
        ['kubetide_loop_tick_failures_total{loop="nodes"} 0+1x60'],
        ['kubetide_loop_tick_failures_total{loop="nodes"} 0 1 1x58'],
    ),
    "KubetideCacheUnreadable": (
        ['kubetide_cache_failures{resource="pods"} 4x60'],
        ['kubetide_cache_failures{resource="pods"} 0 5 0x58'],
    ),
    "KubetideScaleDownHeld": (
        ['kubetide_scale_down_holds{loop="nodes"} 1x60'],
        ['kubetide_scale_down_holds{loop="nodes"} 1x20 0x40'],
    ),
    "KubetideRecordsDropped": (["kubetide_records_dropped_total 0x50 1x10"], ["kubetide_records_dropped_total 7x60"]),
    "KubetideClockSkew": (["kubetide_clock_skew_seconds -9x60"], ["kubetide_clock_skew_seconds -4x60"]),
    "KubetideMetricSourceSilent": (
        ['kubetide_metric_source_left_alone{source="resource"} 1x60'],
        ['kubetide_metric_source_left_alone{source="resource"} 0x60'],
    ),
    "KubetideSamplesOld": (
        ["kubetide_horizontal_newest_sample_age_seconds 200x60"],
        ["kubetide_horizontal_newest_sample_age_seconds 100x60"],
    ),
    "KubetideHpaErrors": (
        ['horizontal_pod_autoscaler_controller_reconciliations_total{error="spec"} 0+4x60'],
        ['horizontal_pod_autoscaler_controller_reconciliations_total{error="none"} 0+4x60'],
    ),
    "KubetideUsageUnread": (
        ['vpa_recommender_metric_server_responses{is_error="true"} 0+1x60'],
        ['vpa_recommender_metric_server_responses{is_error="false"} 0+1x60'],
    ),
    "KubetideVpaTargetUnusable": (
        ['vpa_recommender_vpa_objects_count{unsupported_config="true",update_mode="Off"} 1x60'],
        ['vpa_recommender_vpa_objects_count{unsupported_config="false",update_mode="Off"} 1x60'],
    ),
    "KubetideVpaKilledForMemory": (
        ['vpa_quality_usage_recommendation_relative_diffs_count{is_oom="true",resource="memory"} 0x40 1+1x20'],
        ['vpa_quality_usage_recommendation_relative_diffs_count{is_oom="false",resource="memory"} 0x40 1+1x20'],
    ),
    "KubetideNoAdmission": (
        ['vpa_updater_admission_controller_status_invalid_total{reason="error"} 0+1x60'],
        ['vpa_updater_admission_controller_status_invalid_total{reason="error"} 0 1 2 2x58'],
    ),
    "KubetideReviewsUnreadable": (
        ['vpa_admission_controller_admission_latency_seconds_count{resource="Pod",status="error"} 0x50 1x10'],
        ['vpa_admission_controller_admission_latency_seconds_count{resource="Pod",status="applied"} 0x50 1x10'],
    ),
    "KubetidePodUpdatesFailing": (
        [
            'vpa_updater_failed_eviction_attempts_total{vpa_namespace="shop",vpa_name="a"} 0x20 1+1x20 21x20',
            'vpa_updater_failed_in_place_update_attempts_total{vpa_namespace="shop",vpa_name="a",reason="x"} 0x20 1+1x20 21x20',
        ],
        ['vpa_updater_failed_eviction_attempts_total{vpa_namespace="shop",vpa_name="a"} 0x20 1+1x20 21x20'],
    ),
    "KubetidePodsPending": (
        ['cluster_autoscaler_unschedulable_pods_count{type="unschedulable"} 3x60'],
        ['cluster_autoscaler_unschedulable_pods_count{type="unschedulable"} 3x9 0x9 3x9 0x9 3x9'],
    ),
    "KubetideClusterNotSafe": (
        ["cluster_autoscaler_cluster_safe_to_autoscale 0x60"],
        ["cluster_autoscaler_cluster_safe_to_autoscale 1x60"],
    ),
    "KubetideNodeGroupBackoff": (
        ['cluster_autoscaler_node_group_backoff_status{node_group="a",reason="QUOTA"} 1x60'],
        ['cluster_autoscaler_node_group_backoff_status{node_group="a",reason="QUOTA"} 0x60'],
    ),
    "KubetideScaleUpsFailing": (
        ['cluster_autoscaler_failed_scale_ups_total{reason="timeout"} 0x50 1x10'],
        ['cluster_autoscaler_failed_scale_ups_total{reason="timeout"} 2x60'],
    ),
    "KubetideNodesAtMax": (
        ['cluster_autoscaler_nodes_count{state="ready"} 5x60', "cluster_autoscaler_max_nodes_count 5x60"],
        ['cluster_autoscaler_nodes_count{state="ready"} 4x60', "cluster_autoscaler_max_nodes_count 5x60"],
    ),
    "KubetideMachinesNotJoining": (
        ['cluster_autoscaler_nodes_count{state="longUnregistered"} 1x60'],
        ['cluster_autoscaler_nodes_count{state="unregistered"} 1x60'],
    ),
    "KubetideNoLeader": (
        ['leader_election_master_status{name="kubetide",pod="a"} 0x60', 'leader_election_master_status{name="kubetide",pod="b"} 0x60'],
        ['leader_election_master_status{name="kubetide",pod="a"} 0x60', 'leader_election_master_status{name="kubetide",pod="b"} 1x60'],
    ),
    "KubetideTemplateWrong": (
        ['kubetide_node_template_error_ratio{node_group="a",resource="memory"} -0.1x60'],
        ['kubetide_node_template_error_ratio{node_group="a",resource="memory"} 0.1x60'],
    ),
    "KubetideObjectsNotUnderstood": (
        ['kubetide_objects_not_understood{resource="pods"} 1x60'],
        ['kubetide_objects_not_understood{resource="pods"} 0x60'],
    ),
    "KubetideEvictionsFailing": (
        ['cluster_autoscaler_evicted_pods_total{eviction_result="failed"} 0x50 1x10'],
        ['cluster_autoscaler_evicted_pods_total{eviction_result="succeeded"} 0+1x60'],
    ),
}  # fmt: skip
"""Series, one value a minute, with which each alert fires within the hour, and with which it stays silent."""


def test_promtool_agrees_when_each_alert_fires(tmp_path):
    """Each rule fires on the series made for it and on no others, after its time; the labels of its text are there."""
    promtool = find_prometheus() and find_prometheus().with_name("promtool")
    if promtool is None or not promtool.exists():
        pytest.skip("not there: promtool beside prometheus (KUBETIDE_PROMETHEUS)")
    assert set(FIRES) == set(ALERTS)
    (tmp_path / "alerts.yaml").write_text(RULES)
    cases = []
    for name, (fires, stays) in FIRES.items():
        for lines, is_firing in ((fires, True), (stays, False)):
            series = [dict(zip(("series", "values"), line.split(" ", 1), strict=True)) for line in lines]
            cases.append((name, series, is_firing))
    tests = [
        {
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                    "eval_time": "55m",
                    "exp_samples": [{"labels": "{}", "value": 1}] if is_firing else [],
                }
            ],
        }
        for name, series, is_firing in cases
    ]
    file = tmp_path / "tests.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": tests})
    )
    run = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    for name, rule in ALERTS.items():
        for label in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
            assert re.search(rf"by \([^)]*\b{label}\b", rule["expr"]), (name, label)
