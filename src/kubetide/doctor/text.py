"""Findings as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from kubetide.doctor.finding import SEVERITIES, Finding

_WIDTH = 110
_MOST = 10
"""Objects of one check that are shown with the same reason; the other forms of output have all."""


def findings_text(findings: Sequence[Finding], currency: str = "") -> str:
    """Return the findings grouped by severity, then by check: objects, what was seen, why it matters, the fix.

    Args:
        findings: As ``diagnose`` returns them.
        currency: Of prices; empty for none.
    """
    if not findings:
        return "nothing found that keeps it from scaling well"
    blocks = [_summary(findings, currency)]
    for severity, of_severity in groupby(findings, key=lambda one: one.severity):
        some = list(of_severity)
        blocks.append(f"{severity.upper()} ({len(some)})")
        for _, alike in groupby(some, key=lambda one: (one.check, one.why)):
            blocks.append(_block(list(alike), currency))
    return "\n\n".join(blocks)


def _summary(findings: Sequence[Finding], currency: str) -> str:
    counts = {severity: sum(one.severity == severity for one in findings) for severity in SEVERITIES}
    line = ", ".join(f"{count} {severity}" for severity, count in counts.items())
    cost = sum(one.cost_per_hour or 0.0 for one in findings)
    return f"{line}; {_price(cost, currency)} an hour for nodes that cannot go" if cost else line


def _block(findings: Sequence[Finding], currency: str) -> str:
    first = findings[0]
    lines = [*_filled(f"{first.check}: {first.why}", "  ", "    ")]
    shown = findings[:_MOST]
    for index, one in enumerate(shown):
        cost = f" [{_price(one.cost_per_hour, currency)} an hour]" if one.cost_per_hour else ""
        lines += _filled(f"{one.object}{cost}: {one.seen}", "    ", "      ")
        following = shown[index + 1] if index + 1 < len(shown) else None
        if following is None or following.fix != one.fix:
            lines += _filled(f"fix: {one.fix}", "      ", "        ")
    if len(findings) > len(shown):
        lines.append(f"    and {len(findings) - len(shown)} more; -o json shows all")
    return "\n".join(lines)


def _price(amount: float, currency: str) -> str:
    return f"{amount:.4g} {currency}".rstrip()


def _filled(text: str, first: str, others: str) -> list[str]:
    printable = "".join(char if char.isprintable() else " " for char in text)
    return textwrap.wrap(
        printable,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
