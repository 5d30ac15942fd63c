"""``python -m tools.dashboards``: writes the Grafana dashboards in ``deploy/chart/dashboards`` from the tables below."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "deploy" / "chart" / "dashboards"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_HPA = "horizontal_pod_autoscaler_controller_"
_CA = "cluster_autoscaler_"
_OF_HPA = '{namespace=~"$namespace",hpa_name=~"$hpa"}'
_RECOMMENDED = "kubetide_recommender_recommendation"
_OF_VPA = '{namespace=~"$namespace",vpa=~"$vpa"}'


@dataclass(frozen=True)
class Panel:
    """One panel: queries with the legend of each, the unit, what it says; ``stat`` shows one number."""

    title: str
    text: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    stat: bool = False


@dataclass(frozen=True)
class Dashboard:
    """One dashboard; ``variables`` are names with the series and the label that their values come from."""

    title: str
    panels: tuple[Panel, ...]
    variables: tuple[tuple[str, str, str], ...] = ()


def _rate(series: str, by: str, where: str = "") -> str:
    return f"sum by ({by}) (rate({series}{where}[$__rate_interval]))"


def _quantile(series: str, quantile: float, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({quantile}, sum by ({labels}) (rate({series}_bucket[$__rate_interval])))"


DASHBOARDS = {
    "pods": Dashboard(
        "Kubetide / Pods",
        (
            Panel("HPAs", "HPAs that the loop takes care of.", ((f"sum({_HPA}num_horizontal_pod_autoscalers)", "HPAs"),), stat=True),
            Panel(
                "Desired replicas, all HPAs", "What all chosen HPAs desire together.",
                ((f"sum({_HPA}desired_replicas{_OF_HPA})", "replicas"),), stat=True,
            ),
            Panel(
                "Age of the newest sample", "A loop that reads old samples scales late.",
                (("max(kubetide_horizontal_newest_sample_age_seconds)", "age"),), "s", stat=True,
            ),
            Panel(
                "Errors a second", "HPAs that could not be evaluated; the HPA's conditions name the cause.",
                ((f'sum(rate({_HPA}reconciliations_total{{error!="none"}}[$__rate_interval]))', "errors"),), "ops", stat=True,
            ),
            Panel(
                "Desired replicas", "What each HPA desires.",
                ((f"sum by (namespace, hpa_name) ({_HPA}desired_replicas{_OF_HPA})", "{{namespace}}/{{hpa_name}}"),),
            ),
            Panel(
                "Evaluations by action", "HPAs evaluated a second: scale_up, scale_down, none.",
                ((_rate(f"{_HPA}reconciliations_total", "action"), "{{action}}"),), "ops",
            ),
            Panel(
                "Metrics by type and error", "Metrics evaluated a second.",
                ((_rate(f"{_HPA}metric_computation_total", "metric_type, error"), "{{metric_type}} {{error}}"),), "ops",
            ),
            Panel(
                "Decisions by reason", "Rescales an hour: done, only advised, refused.",
                (('sum by (reason) (increase(kubetide_decisions_total{loop="horizontal"}[1h]))', "{{reason}}"),),
            ),
            Panel(
                "Duration of a tick", "From the first question to the record.",
                (
                    (_quantile("kubetide_horizontal_tick_duration_seconds", 0.5), "median"),
                    (_quantile("kubetide_horizontal_tick_duration_seconds", 0.99), "99 %"),
                ), "s",
            ),
            Panel(
                "Metric sources left alone", "1 while a source is not asked, as it did not answer three times in a row.",
                (("max by (source) (kubetide_metric_source_left_alone)", "{{source}}"),),
            ),
        ),
        (
            ("namespace", f"{_HPA}desired_replicas", "namespace"),
            ("hpa", f"{_HPA}desired_replicas", "hpa_name"),
        ),
    ),
    "nodes": Dashboard(
        "Kubetide / Nodes",
        (
            Panel("Nodes", "Nodes in all states.", ((f"sum({_CA}nodes_count)", "nodes"),), stat=True),
            Panel(
                "Pending pods", "Pods for which no node has space.",
                ((f'sum({_CA}unschedulable_pods_count{{type="unschedulable"}})', "pods"),), stat=True,
            ),
            Panel("Unneeded nodes", "Nodes that will go when their time is up.", ((f"sum({_CA}unneeded_nodes_count)", "nodes"),), stat=True),
            Panel(
                "Safe to autoscale", "0: too many nodes are unready, and nothing is changed.",
                ((f"min({_CA}cluster_safe_to_autoscale)", "safe"),), stat=True,
            ),
            Panel(
                "Nodes by state", "",
                ((f"sum by (state) ({_CA}nodes_count)", "{{state}}"), (f"max({_CA}max_nodes_count)", "most")),
            ),
            Panel(
                "Pending and skipped pods", "",
                (
                    (f"sum by (type) ({_CA}unschedulable_pods_count)", "{{type}}"),
                    (f"sum by (requestor) ({_CA}skipped_pods_count)", "skipped: {{requestor}}"),
                ),
            ),
            Panel("Cores", "Cores of all nodes, and the limits of the cluster.", (
                (f"sum({_CA}cluster_cpu_current_cores)", "cores"),
                (f"max by (direction) ({_CA}cpu_limits_cores)", "{{direction}}"),
            )),
            Panel("Memory", "Memory of all nodes, and the limits of the cluster.", (
                (f"sum({_CA}cluster_memory_current_bytes)", "memory"),
                (f"max by (direction) ({_CA}memory_limits_bytes)", "{{direction}}"),
            ), "bytes"),
            Panel("Node groups", "Nodes that each group is to have, of how many at most; with --emit-per-nodegroup-metrics.", (
                (f"sum by (node_group) ({_CA}node_group_target_count)", "{{node_group}}"),
                (f"sum by (node_group) ({_CA}node_group_max_count)", "{{node_group}} most"),
            )),
            Panel(
                "Groups left out after failures", "1 while a group is in back-off; with --emit-per-nodegroup-metrics.",
                ((f"max by (node_group, reason) ({_CA}node_group_backoff_status)", "{{node_group}} {{reason}}"),),
            ),
            Panel("Nodes requested and removed", "In an hour.", (
                (f"sum(increase({_CA}scaled_up_nodes_total[1h]))", "requested"),
                (f"sum by (reason) (increase({_CA}scaled_down_nodes_total[1h]))", "removed: {{reason}}"),
            )),
            Panel("Failures", "In an hour.", (
                (f"sum by (reason) (increase({_CA}failed_scale_ups_total[1h]))", "scale-up: {{reason}}"),
                (f"sum by (reason) (increase({_CA}failed_node_creations_total[1h]))", "machine: {{reason}}"),
                (f"sum by (type) (increase({_CA}errors_total[1h]))", "tick: {{type}}"),
            )),
            Panel(
                "Nodes that stay, and why", "Candidates for removal that stay, by what blocks it.",
                ((f"sum by (reason) ({_CA}unremovable_nodes_count)", "{{reason}}"),),
            ),
            Panel("Evictions", "Pods evicted from nodes that go, in an hour.", (
                (f"sum by (eviction_result) (increase({_CA}evicted_pods_total[1h]))", "{{eviction_result}}"),
            )),
            Panel(
                "Time to ready", "Of the last node that joined each group, from its creation on.",
                (("max by (node_group) (kubetide_node_time_to_ready_seconds)", "{{node_group}}"),), "s",
            ),
            Panel(
                "Template error", "(real - promised) / promised allocatable of the last node of each group.",
                (("max by (node_group, resource) (kubetide_node_template_error_ratio)", "{{node_group}} {{resource}}"),), "percentunit",
            ),
            Panel(
                "Duration by part of a tick", "99 % of all.",
                ((_quantile(f"{_CA}function_duration_seconds", 0.99, "function"), "{{function}}"),), "s",
            ),
        ),
    ),
    "sizes": Dashboard(
        "Kubetide / Sizes",
        (
            Panel("VPAs", "VPAs that the recommender takes care of.", (("sum(vpa_recommender_vpa_objects_count)", "VPAs"),), stat=True),
            Panel(
                "Recommended CPU", "Sum of the targets of all chosen containers, one pod each.",
                ((f"sum({_RECOMMENDED}" + _OF_VPA.replace("}", ',resource="cpu",bound="target"}') + ")", "cores"),), stat=True,
            ),
            Panel(
                "Recommended memory", "Sum of the targets of all chosen containers, one pod each.",
                ((f"sum({_RECOMMENDED}" + _OF_VPA.replace("}", ',resource="memory",bound="target"}') + ")", "bytes"),), "bytes", stat=True,
            ),
            Panel(
                "CPU", "Lower bound, target and upper bound of each container; pods outside of the bounds are updated.",
                ((f"max by (namespace, vpa, container, bound) ({_RECOMMENDED}" + _OF_VPA.replace("}", ',resource="cpu",bound!="uncapped_target"}') + ")",
                  "{{namespace}}/{{vpa}} {{container}} {{bound}}"),),
            ),
            Panel(
                "Memory", "Lower bound, target and upper bound of each container; pods outside of the bounds are updated.",
                ((f"max by (namespace, vpa, container, bound) ({_RECOMMENDED}" + _OF_VPA.replace("}", ',resource="memory",bound!="uncapped_target"}') + ")",
                  "{{namespace}}/{{vpa}} {{container}} {{bound}}"),), "bytes",
            ),
            Panel(
                "Updates by kind", "Pods evicted or resized in an hour.",
                (('sum by (reason) (increase(kubetide_decisions_total{loop="updater"}[1h]))', "{{reason}}"),),
            ),
            Panel(
                "Time since the last pass", "Of the recommender, the updater and the webhook.",
                (('time() - max by (loop) (kubetide_loop_last_tick_timestamp_seconds{loop=~"recommender|updater|admission"})', "{{loop}}"),), "s",
            ),
        ),
        (
            ("namespace", _RECOMMENDED, "namespace"),
            ("vpa", _RECOMMENDED, "vpa"),
        ),
    ),
    "loops": Dashboard(
        "Kubetide / Loops",
        (
            Panel("Time since the last tick", "Of each loop.", (
                ("time() - max by (loop) (kubetide_loop_last_tick_timestamp_seconds)", "{{loop}}"),
            ), "s"),
            Panel("Failed ticks", "In an hour; the log has the error.", (
                ("sum by (loop) (increase(kubetide_loop_tick_failures_total[1h]))", "{{loop}}"),
            )),
            Panel("Decisions", "In an hour, done or only advised.", (
                ("sum by (loop, reason) (increase(kubetide_decisions_total[1h]))", "{{loop}} {{reason}}"),
            )),
            Panel("Holds of scale-down", "Reasons for which the last tick took nothing away.", (
                ("max by (loop) (kubetide_scale_down_holds)", "{{loop}}"),
            )),
            Panel("Age of the caches", "Since the API server last said anything of the resource.", (
                ("max by (resource) (kubetide_cache_age_seconds)", "{{resource}}"),
            ), "s"),
            Panel("Caches that cannot be read", "Lists and watches that failed in a row.", (
                ("max by (resource) (kubetide_cache_failures)", "{{resource}}"),
            )),
            Panel("Leaders", "1 for the replica that acts.", (
                ("max by (name) (leader_election_master_status)", "{{name}}"),
            )),
            Panel("Clock skew", "How far our clock is ahead of the API server's.", (
                ("max(kubetide_clock_skew_seconds)", "skew"),
            ), "s"),
            Panel("Requests to the API server", "A second, by verb and code.", (
                (_rate("rest_client_requests_total", "method, code"), "{{method}} {{code}}"),
            ), "reqps"),
            Panel("Duration of requests", "99 % of all.", (
                (_quantile("rest_client_request_duration_seconds", 0.99, "verb"), "{{verb}}"),
            ), "s"),
            Panel("Waits for kube-api-qps, and repeats", "A second.", (
                (_rate("rest_client_rate_limiter_duration_seconds_count", "verb"), "wait {{verb}}"),
                (_rate("rest_client_request_retries_total", "code"), "repeat after {{code}}"),
            ), "ops"),
            Panel("Lost records, objects not understood", "", (
                ("sum(increase(kubetide_records_dropped_total[1h]))", "lost records in an hour"),
                ("sum by (resource) (kubetide_objects_not_understood)", "not understood: {{resource}}"),
            )),
        ),
    ),
}  # fmt: skip


def dashboard(name: str) -> str:
    """Return a dashboard in the form that Grafana imports."""
    made = DASHBOARDS[name]
    panels, x, y = [], 0, 0
    for number, panel in enumerate(made.panels, start=1):
        width, height = (6, 4) if panel.stat else (12, 8)
        if x + width > 24 or (panels and panels[-1]["gridPos"]["h"] != height):
            x, y = 0, y + panels[-1]["gridPos"]["h"]
        panels.append(_panel(number, panel, {"x": x, "y": y, "w": width, "h": height}))
        x += width
    body = {
        "uid": f"kubetide-{name}",
        "title": made.title,
        "tags": ["kubetide"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "links": [{"type": "dashboards", "tags": ["kubetide"], "title": "Kubetide", "asDropdown": True}],
        "templating": {"list": [_SOURCE_VARIABLE, *(_variable(*one) for one in made.variables)]},
        "panels": panels,
    }
    return json.dumps(body, indent=1) + "\n"


_SOURCE_VARIABLE = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(name: str, series: str, label: str) -> dict[str, object]:
    query = f"label_values({series}, {label})"
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, object]:
    targets = [
        {"refId": chr(ord("A") + i), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
        for i, (query, legend) in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": "stat" if panel.stat else "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}} if panel.stat else {},
        "targets": targets,
    }


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in DASHBOARDS:
        (FOLDER / f"{name}.json").write_text(dashboard(name), encoding="utf-8")


if __name__ == "__main__":
    main()
