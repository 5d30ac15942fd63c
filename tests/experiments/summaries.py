"""Summaries made by hand."""

from __future__ import annotations

from kubetide.simulate.outcome.summary import ServiceSummary, Summary


def summary_of(cost, lost):
    service = ServiceSummary(
        name="web",
        requests=100.0,
        peak_rps=1.0,
        replicas_min=1,
        replicas_max=2,
        pod_minutes=60.0,
        slo_minutes_lost=lost,
        slo_minutes_own_step=lost,
        unserved_share=0.0,
        slack=0.1,
        rescales=1,
    )
    return Summary(
        name="shop",
        start=0,
        hours=1.0,
        services=(service,),
        groups=(),
        cost=cost,
        pod_starts=1,
        pending_max=0,
        pending_pod_minutes=0.0,
        decisions=1,
    )
