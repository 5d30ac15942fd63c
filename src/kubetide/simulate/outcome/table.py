"""The summary of a run as text, with the same cells for the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kubetide.simulate.outcome.summary import Summary
from kubetide.units.time import format_duration, format_rfc3339, seconds

_WIDTH = 110
"""What single facts are broken into lines for."""


class Table(msgspec.Struct, frozen=True):
    """Cells for people; the first column is a name, the others are numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Fact = tuple[str, str]
"""A label, and its value for people."""


class SummaryCells(msgspec.Struct, frozen=True):
    """A summary in words: a heading, a table of services, one of node groups, facts in lines by their subject, and notices."""

    name: str
    period: str
    services: Table
    groups: Table
    facts: tuple[tuple[Fact, ...], ...]
    notices: tuple[str, ...] = ()


def summary_table(summary: Summary) -> str:
    """Return the summary as aligned plain text, without a final line break."""
    cells = summary_cells(summary)
    facts = "\n".join(_filled([f"{label} {value}" for label, value in line]) for line in cells.facts)
    blocks = [
        f"{cells.name}   {cells.period}",
        *(aligned(table) for table in (cells.services, cells.groups) if table.rows),
        facts,
        *(["\n".join(cells.notices)] if cells.notices else []),
    ]
    return "\n\n".join(blocks)


def summary_cells(summary: Summary) -> SummaryCells:
    """Return the summary with every number written for people."""
    start = format_rfc3339(summary.start)[:16].replace("T", " ")
    return SummaryCells(
        name=printable(summary.name),
        period=f"{start} UTC, {decimal(summary.hours, 2)} h{_after_warm_up(summary)}",
        services=_services(summary),
        groups=_groups(summary),
        facts=tuple(line for line in _facts(summary) if line),
        notices=tuple(printable(notice) for notice in summary.notices),
    )


def _facts(summary: Summary) -> Iterator[tuple[Fact, ...]]:
    minimums = (("minimum sizes", decimal(summary.cost_of_minimums, 2)),) if summary.cost_of_minimums else ()
    yield (
        ("cost", f"{decimal(summary.cost, 2)} {printable(summary.currency)}"),
        *minimums,
        ("without scaling", decimal(summary.cost_unscaled, 2)),
        ("lower bound", decimal(summary.cost_bound, 2)),
        ("cost over bound", _ratio(summary.cost_over_bound)),
    )
    yield _objective(summary)
    yield (
        ("pods started", count(summary.pod_starts)),
        ("most pods pending", count(summary.pending_max)),
        ("pending pod-minutes", decimal(summary.pending_pod_minutes, 1)),
        ("evictions", count(summary.evictions)),
        *_deletions(summary),
    )
    yield _waits(summary)
    yield (
        ("nodes bought", count(summary.nodes_added)),
        ("nodes removed", count(summary.nodes_removed)),
        *_churn(summary),
    )
    yield _updates(summary)
    yield (("decisions", count(summary.decisions)),)


def _deletions(summary: Summary) -> Iterator[Fact]:
    """Pods that were deleted without being asked; nothing where none were."""
    if summary.preemptions:
        yield "preempted", count(summary.preemptions)
    if summary.taint_evictions:
        yield "evicted by taints", count(summary.taint_evictions)


def _objective(summary: Summary) -> tuple[Fact, ...]:
    """The minutes in which services missed their objective; none where there is no service that could."""
    if not summary.services:
        return ()
    lost = sum(service.slo_minutes_lost for service in summary.services)
    own_step = sum(service.slo_minutes_own_step for service in summary.services)
    return ("SLO minutes lost", count(lost)), ("at the load's own step", count(own_step))


def _waits(summary: Summary) -> tuple[Fact, ...]:
    """How long pods waited for a node; nothing where none did."""
    if not summary.wait_max_s:
        return ()
    left = (("still pending at the end", count(summary.left_pending)),) if summary.left_pending else ()
    return (
        ("median wait for a node", _duration(summary.wait_p50_s)),
        ("p95 wait", _duration(summary.wait_p95_s)),
        ("longest wait", _duration(summary.wait_max_s)),
        *left,
    )


def _churn(summary: Summary) -> tuple[Fact, ...]:
    if not summary.nodes_removed:
        return ()
    return (
        ("lived under 15 min", count(summary.nodes_short_lived)),
        ("bought back within 15 min", count(summary.nodes_bought_back)),
    )


def _duration(length_s: float) -> str:
    return format_duration(seconds(round(length_s)))


def _ratio(value: float | None) -> str:
    return "-" if value is None else decimal(value, 2)


def _updates(summary: Summary) -> tuple[Fact, ...]:
    """What happened to containers for their requests and limits, where anything did."""
    throttled = max((one.throttled_share for one in summary.services), default=0.0)
    found: tuple[tuple[str, int], ...] = (
        ("OOM kills", sum(one.oom_kills for one in summary.services)),
        ("pods evicted by VPA", summary.vpa_evictions),
        ("pods resized by VPA", summary.resizes),
    )
    if summary.vpa_evictions or summary.resizes:
        found = (*found, ("turns of replicas", sum(one.turns for one in summary.services)))
    shares = (("most throttled", percent(throttled, 1)),) if throttled else ()
    return (*((label, count(value)) for label, value in found if value), *shares)


def _after_warm_up(summary: Summary) -> str:
    if not summary.warm_up_s:
        return ""
    return f", after {decimal(summary.warm_up_s / 60, 1).removesuffix('.0')} min of warm-up"


def _services(summary: Summary) -> Table:
    return Table(
        columns=(
            "service",
            "requests",
            "peak/s",
            "pods",
            "pod-min",
            "SLO min",
            "own step",
            "unserved",
            "slack",
            "rescales",
        ),
        rows=tuple(
            (
                printable(service.name),
                count(service.requests),
                decimal(service.peak_rps, 1),
                span(service.replicas_min, service.replicas_max),
                count(service.pod_minutes),
                count(service.slo_minutes_lost),
                count(service.slo_minutes_own_step),
                percent(service.unserved_share, 2),
                percent(service.slack, 1),
                count(service.rescales),
            )
            for service in summary.services
        ),
    )


def _groups(summary: Summary) -> Table:
    return Table(
        columns=("node group", "nodes", "node-hours"),
        rows=tuple(
            (printable(group.name), span(group.nodes_min, group.nodes_max), decimal(group.node_hours, 1))
            for group in summary.groups
        ),
    )


def _filled(words: Sequence[str]) -> str:
    lines = [""]
    for word in words:
        joined = f"{lines[-1]}   {word}" if lines[-1] else word
        if len(joined) <= _WIDTH:
            lines[-1] = joined
        else:
            lines.append(word)
    return "\n".join(lines)


def aligned(table: Table) -> str:
    """Return a table as text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    return "\n".join(_line(row, widths) for row in (table.columns, *table.rows))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first = row[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join((first, *rest))


def count(value: float) -> str:
    """Return a whole number with thousands separated by commas: ``1,234,567``."""
    return f"{round(value):,}"


def decimal(value: float, digits: int) -> str:
    """Return a number with that many decimals, or none from a thousand on."""
    rounded = round(value, digits)
    return count(rounded) if abs(rounded) >= 1000 else f"{rounded:.{digits}f}"


def percent(share: float, digits: int) -> str:
    """Return a share as a percentage; one above 0 that rounds to it shows as ``<0.01%``."""
    least = 10.0**-digits
    if 0 < share * 100 < least / 2:
        return f"<{least:.{digits}f}%"
    return f"{share * 100:.{digits}f}%"


def span(low: int, high: int) -> str:
    """Return a range of counts: ``3-12``, or ``3`` if it never changed."""
    return count(low) if low == high else f"{count(low)}-{count(high)}"


def printable(text: str) -> str:
    """Return the text with control characters made visible."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
