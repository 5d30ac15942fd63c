"""The table of a scenario's variants: a column for each figure that one of them has."""

from __future__ import annotations

from kubetide.simulate.outcome.summary import ServiceSummary, Summary
from kubetide.simulate.variants import variants_table


def summary(services=(), **figures):
    return Summary(
        name="day",
        start=0,
        hours=1.0,
        services=services,
        groups=(),
        cost=1.5,
        pod_starts=0,
        pending_max=0,
        pending_pod_minutes=0.0,
        decisions=0,
        **figures,
    )


def head(*played):
    return variants_table(dict(zip("ab", played, strict=False))).splitlines()[0].split()


def test_figures_that_no_variant_has_are_left_out():
    """Without services there are none of theirs; waits are shown as soon as a pod of one variant waited."""
    assert head(summary(), summary()) == ["variant", "nodes", "bought", "cost"]
    waited = head(summary(), summary(wait_max_s=90.0))
    assert waited[7:10] == ["longest", "wait,", "s"]
    assert "SLO" not in waited
    service = ServiceSummary(
        name="web",
        requests=10.0,
        peak_rps=1.0,
        replicas_min=1,
        replicas_max=2,
        slo_minutes_own_step=0,
        unserved_share=0.1,
        slo_minutes_lost=2,
        pod_minutes=3.0,
        slack=0.5,
        rescales=1,
    )
    assert "unserved" in head(summary(services=(service,)))
    assert "evictions" in head(summary(vpa_evictions=1))
