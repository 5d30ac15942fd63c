"""Verdicts of nodes on a pod, as lines for people."""

from __future__ import annotations

from kubetide.nodes.explain.waiting.node_fit import NodesExplanation, NodeVerdict

_MOST_VERDICTS = 20
_MOST_NAMES = 5


def node_lines(found: NodesExplanation) -> list[str]:
    """Return one or two lines for nodes with the same verdict; those that need most changes are only counted."""
    lines = [found.sentence]
    for verdict in found.verdicts[:_MOST_VERDICTS]:
        lines += _verdict_lines(verdict)
    rest = found.verdicts[_MOST_VERDICTS:]
    if rest:
        counts: dict[str, int] = {}
        for verdict in rest:
            words = ", ".join(verdict.reasons) or verdict.plugin
            counts[words] = counts.get(words, 0) + len(verdict.nodes)
        text = ", ".join(f"{count} {words}" for words, count in sorted(counts.items()))
        lines.append(f"and {sum(counts.values())} nodes more: {text}")
    return lines


def _verdict_lines(verdict: NodeVerdict) -> list[str]:
    names = ", ".join(verdict.nodes[:_MOST_NAMES])
    more = len(verdict.nodes) - _MOST_NAMES
    title = f"{'node' if len(verdict.nodes) == 1 else f'{len(verdict.nodes)} nodes:'} {names}"
    title += f" and {more} more" if more > 0 else ""
    if verdict.takes:
        return [f"{title}: yes"]
    lines = [f"{title}: no, {verdict.why}"]
    if verdict.changes:
        left = f"not enough alone: then {verdict.remaining}"
        sure = "verified by asking the filters again" if verdict.verified else left
        lines.append(f"  would help: {verdict.way_out} ({sure})")
    return lines
