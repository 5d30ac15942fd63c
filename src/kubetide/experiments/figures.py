"""Figures of two runs, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kubetide.simulate.outcome.summary import GroupSummary, ServiceSummary, Summary
from kubetide.simulate.outcome.table import Table, count, decimal, percent, printable

_SERVICE_FIGURES = (
    ("SLO minutes lost", "slo_minutes_lost", 0),
    ("unserved", "unserved_share", -1),
    ("pod-minutes", "pod_minutes", 0),
    ("slack", "slack", -1),
    ("rescales", "rescales", 0),
)


class Figure(msgspec.Struct, frozen=True):
    """One figure of both runs.

    Attributes:
        name: What it is, such as ``evictions``.
        subject: The service or node group that it is of; empty for the whole run.
        before, after: Of the scenario as it is, and of the one with changes; None where one has no such subject.
        digits: After the point; -1 for a share, which is written in percent.
    """

    name: str
    before: float | None
    after: float | None
    subject: str = ""
    digits: int = 0

    @property
    def change(self) -> float:
        """How much higher the changed run's figure is."""
        return (self.after or 0.0) - (self.before or 0.0)


def figures(before: Summary, after: Summary) -> list[Figure]:
    """Return the figures of both runs: of the whole, then of each service and of each node group."""
    return [*_of_run(before, after), *_of_services(before, after), *_of_groups(before, after)]


def _of_run(a: Summary, b: Summary) -> Iterator[Figure]:
    yield Figure(f"cost, {a.currency}", a.cost, b.cost, digits=2)
    yield Figure(f"cost of minimum sizes, {a.currency}", a.cost_of_minimums, b.cost_of_minimums, digits=2)
    yield Figure(f"lower bound of the cost, {a.currency}", a.cost_bound, b.cost_bound, digits=2)
    if a.services or b.services:
        yield Figure("SLO minutes lost", _slo(a), _slo(b))
        yield Figure("unserved", unserved_share(a.services), unserved_share(b.services), digits=-1)
    yield Figure("pending pod-minutes", a.pending_pod_minutes, b.pending_pod_minutes, digits=1)
    yield Figure("most pods pending", a.pending_max, b.pending_max)
    yield Figure("median wait for a node, s", a.wait_p50_s, b.wait_p50_s, digits=1)
    yield Figure("p95 wait, s", a.wait_p95_s, b.wait_p95_s, digits=1)
    yield Figure("longest wait, s", a.wait_max_s, b.wait_max_s, digits=1)
    yield Figure("pods started", a.pod_starts, b.pod_starts)
    yield Figure("evictions", a.evictions, b.evictions)
    if a.preemptions or b.preemptions:
        yield Figure("preempted", a.preemptions, b.preemptions)
    if a.taint_evictions or b.taint_evictions:
        yield Figure("evicted by taints", a.taint_evictions, b.taint_evictions)
    yield Figure("nodes bought", a.nodes_added, b.nodes_added)
    yield Figure("nodes removed", a.nodes_removed, b.nodes_removed)
    yield Figure("lived under 15 min", a.nodes_short_lived, b.nodes_short_lived)
    yield Figure("bought back within 15 min", a.nodes_bought_back, b.nodes_bought_back)
    yield Figure("decisions", a.decisions, b.decisions)


def _slo(summary: Summary) -> int:
    return sum(service.slo_minutes_lost for service in summary.services)


def unserved_share(services: Iterable[ServiceSummary]) -> float:
    """Return the share of the services' requests that were offered above their ready capacity."""
    there = list(services)
    offered = sum(service.requests for service in there)
    unserved = sum(service.requests * service.unserved_share for service in there)
    return unserved / offered if offered else 0.0


def _of_services(before: Summary, after: Summary) -> Iterator[Figure]:
    ours = {service.name: service for service in before.services}
    theirs = {service.name: service for service in after.services}
    for name in dict.fromkeys((*ours, *theirs)):
        a, b = ours.get(name), theirs.get(name)
        for title, field, digits in _SERVICE_FIGURES:
            yield Figure(title, _get(a, field), _get(b, field), subject=name, digits=digits)


def _of_groups(before: Summary, after: Summary) -> Iterator[Figure]:
    ours = {group.name: group for group in before.groups}
    theirs = {group.name: group for group in after.groups}
    for name in dict.fromkeys((*ours, *theirs)):
        a, b = ours.get(name), theirs.get(name)
        yield Figure("node-hours", _get(a, "node_hours"), _get(b, "node_hours"), subject=name, digits=1)
        yield Figure("most nodes", _get(a, "nodes_max"), _get(b, "nodes_max"), subject=name)


def _get(one: ServiceSummary | GroupSummary | None, field: str) -> float | None:
    return None if one is None else float(getattr(one, field))


def comparison_table(found: list[Figure]) -> Table:
    """Return the figures as cells: of the whole run all, of services and groups those that differ."""
    rows = [figure for figure in found if not figure.subject or _differs(figure)]
    return Table(
        columns=("", "as it is", "with changes", "change"), rows=tuple(_row(figure) for figure in rows)
    )


def _differs(figure: Figure) -> bool:
    return written(figure.before, figure.digits) != written(figure.after, figure.digits)


def _row(figure: Figure) -> tuple[str, str, str, str]:
    title = f"{printable(figure.subject)}: {figure.name}" if figure.subject else figure.name
    return title, written(figure.before, figure.digits), written(figure.after, figure.digits), _change(figure)


def written(value: float | None, digits: int) -> str:
    """Return a figure as text for people."""
    if value is None:
        return "-"
    if digits < 0:
        return percent(value, 2)
    return decimal(value, digits) if digits else count(value)


def _change(figure: Figure) -> str:
    if figure.before is None or figure.after is None or not _differs(figure):
        return ""
    sign = "+" if figure.change > 0 else "-"
    if figure.digits < 0:
        return f"{sign}{decimal(abs(figure.change) * 100, 2)} points"
    amount = written(abs(figure.change), figure.digits)
    share = f" ({sign}{abs(figure.change) / figure.before:.1%})" if figure.before else ""
    return f"{sign}{amount}{share}"
