"""The checks in the order in which their findings are shown: a new check is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kubetide.doctor.checks import (
    budgets,
    cluster_health,
    competing_controllers,
    daemon_sets,
    elastic,
    group_backoff,
    group_maximum,
    group_warnings,
    hpa_and_vpa,
    hpa_bounds,
    hpa_metric,
    hpa_requests,
    hpa_shared_target,
    hpa_target,
    late_nodes,
    no_group,
    nomination_taint,
    owners,
    priorities,
    requests,
    scale_down_blockers,
    scaling_policies,
    scheduler_profile,
    time_tables,
    vpa_target,
    waiting_capacity,
    zones,
)
from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot


class Check(NamedTuple):
    """One check: a pure function of the snapshot."""

    name: str
    find: Callable[[Snapshot], Iterable[Finding]]


CHECKS: Final = (
    Check("cluster-health", cluster_health.find),
    Check("hpa-target", hpa_target.find),
    Check("hpa-requests", hpa_requests.find),
    Check("hpa-metric", hpa_metric.find),
    Check("hpa-shared-target", hpa_shared_target.find),
    Check("hpa-and-vpa", hpa_and_vpa.find),
    Check("vpa-target", vpa_target.find),
    Check("hpa-bounds", hpa_bounds.find),
    Check("elastic", elastic.find),
    Check("time-tables", time_tables.find),
    Check("competing-controllers", competing_controllers.find),
    Check("scaling-policies", scaling_policies.find),
    Check("no-group", no_group.find),
    Check("daemon-sets", daemon_sets.find),
    Check("group-backoff", group_backoff.find),
    Check("group-maximum", group_maximum.find),
    Check("group-warnings", group_warnings.find),
    Check("priorities", priorities.find),
    Check("late-nodes", late_nodes.find),
    Check("nomination-taint", nomination_taint.find),
    Check("waiting-capacity", waiting_capacity.find),
    Check("zones", zones.find),
    Check("scale-down-blockers", scale_down_blockers.find),
    Check("scheduler-profile", scheduler_profile.find),
    Check("budgets", budgets.find),
    Check("owners", owners.find),
    Check("requests", requests.find),
)
