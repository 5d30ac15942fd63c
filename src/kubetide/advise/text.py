"""The report as a table, as CSV and as one HTML page."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
from collections.abc import Sequence
from typing import Final

from kubetide.advise.report import Amounts, Report, Row
from kubetide.units.quantity import milli_to_text

_COLUMNS: Final = (
    "WORKLOAD",
    "CONTAINER",
    "PODS",
    "CPU",
    "P50/P95/MAX",
    "MEMORY",
    "P50/P95/MAX",
    "COST",
    "SAVING",
    "RISK",
)
_NUMBERS: Final = frozenset({2, 3, 4, 5, 6, 7, 8})
_CSV: Final = (
    *("namespace", "kind", "workload", "container", "pods"),
    *("cpu_request_m", "cpu_p50_m", "cpu_p95_m", "cpu_max_m", "cpu_recommended_m"),
    *(
        "memory_request_bytes",
        "memory_p50_bytes",
        "memory_p95_bytes",
        "memory_max_bytes",
        "memory_recommended_bytes",
    ),
    *("samples", "history_s", "cost_month", "cost_then_month", "saving_month", "currency", "risk", "because"),
)
_STYLE: Final = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff }
table { border-collapse: collapse } th, td { padding: .3rem .7rem; text-align: left; border-bottom: 1px solid #ddd }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
.high { color: #b00020 } .medium { color: #8a5a00 } .low { color: #1b6e3a } .why { color: #555; font-size: 12px }
"""


def table_text(report: Report, most: int = 0) -> str:
    """Return the report as aligned plain text.

    Args:
        most: Rows that are shown; 0 for all.
    """
    shown = report.rows[:most] if most else report.rows
    lines = _aligned([_COLUMNS, *(_cells(row) for row in shown)])
    if len(shown) < len(report.rows):
        lines.append(f"… and {len(report.rows) - len(shown)} more")
    reasons = [
        f"{row.namespace}/{row.workload} {row.container}: {text}" for row in shown for text in row.because
    ]
    blocks = ["\n".join(lines), _total(report)]
    if reasons:
        blocks.append("\n".join(_once(reasons, len(shown))))
    if report.notices:
        blocks.append("\n".join(report.notices))
    return "\n\n".join(blocks)


def _once(reasons: Sequence[str], rows: int) -> list[str]:
    """Return the sentences; one that is said of every row is said once, of all."""
    counts: dict[str, int] = {}
    for one in reasons:
        text = one.partition(": ")[2]
        counts[text] = counts.get(text, 0) + 1
    common = [text for text, count in counts.items() if count == rows and rows > 1]
    return [
        *(f"all: {text}" for text in common),
        *(one for one in reasons if one.partition(": ")[2] not in common),
    ]


def _total(report: Report) -> str:
    share = f" ({abs(report.saving) / report.cost:.0%})" if report.cost else ""
    word = "less" if report.saving >= 0 else "more"
    return (
        f"{report.source}: requests cost {report.cost:,.2f} {report.currency} a month, as recommended "
        f"{report.cost_then:,.2f}: {abs(report.saving):,.2f} {word}{share}"
    )


def _cells(row: Row) -> tuple[str, ...]:
    return (
        f"{row.namespace}/{row.workload}",
        row.container,
        f"{row.pods:g}",
        f"{_cpu(row.cpu.request)} → {_cpu(row.cpu.recommended)}",
        "/".join(map(_cpu, _used(row.cpu))),
        f"{_memory(row.memory.request)} → {_memory(row.memory.recommended)}",
        "/".join(map(_memory, _used(row.memory))),
        f"{row.cost:,.2f}",
        f"{row.saving:,.2f}",
        row.risk,
    )


def _used(amounts: Amounts) -> tuple[int | None, int | None, int | None]:
    return amounts.p50, amounts.p95, amounts.max


def _cpu(amount: int | None) -> str:
    return "-" if amount is None else milli_to_text(amount)


def _memory(amount: int | None) -> str:
    if amount is None:
        return "-"
    return f"{amount / (1 << 30):.1f}Gi" if amount >= 1 << 30 else f"{amount / (1 << 20):.0f}Mi"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    return [
        "  ".join(
            cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def csv_text(report: Report) -> str:
    """Return one line per container, without a final line break; amounts in millicores and bytes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for row in report.rows:
        amounts = [
            value
            for one in (row.cpu, row.memory)
            for value in (one.request, one.p50, one.p95, one.max, one.recommended)
        ]
        named = [_harmless(text) for text in (row.namespace, row.kind, row.workload, row.container)]
        costs = [f"{value:.4f}" for value in (row.cost, row.cost_then, row.saving)]
        writer.writerow(
            [
                *named,
                f"{row.pods:g}",
                *("" if value is None else value for value in amounts),
                row.samples,
                row.history_s,
                *costs,
                _harmless(report.currency),
                row.risk,
                _harmless("; ".join(row.because)),
            ]
        )
    return out.getvalue().rstrip("\n")


def _harmless(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def html_text(report: Report) -> str:
    """Return one page that loads nothing and runs no script."""
    escape = html.escape
    head = "".join(f"<th{_align(column)}>{escape(name)}</th>" for column, name in enumerate(_COLUMNS))
    body = "\n".join(_html_row(row) for row in report.rows)
    notices = "".join(f"<p>{escape(one)}</p>" for one in report.notices)
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<title>Requests and savings · kubetide</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>Requests and savings</h1><p>{escape(_total(report))}</p>\n"
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>{notices}</body></html>"
    )


def _html_row(row: Row) -> str:
    cells = "".join(
        f"<td{_align(column)}>{html.escape(cell)}</td>" for column, cell in enumerate(_cells(row)[:-1])
    )
    why = "".join(f'<div class="why">{html.escape(text)}</div>' for text in row.because)
    return f'<tr>{cells}<td class="{row.risk}">{row.risk}{why}</td></tr>'


def _align(column: int) -> str:
    return ' class="n"' if column in _NUMBERS else ""
