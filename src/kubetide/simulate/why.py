"""Answers why, from the records of a run: also of one that is still running.

The loop's core is brought to the time that is asked about by deciding the recorded ticks again from
the last whole state on; then the loop's own explanation is made on that state, and what was decided
about the object before is listed with it.
"""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Core, Record
from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.explain import explain as explain_hpa
from kubetide.nodes.core import NodesCore
from kubetide.nodes.explain import (
    GroupExplanation,
    GroupVerdict,
    NodeExplanation,
    PodExplanation,
    explain_group,
    explain_node,
    explain_pod,
)
from kubetide.ports.errors import KubetideError
from kubetide.runtime.records import RecordError, read_records
from kubetide.simulate.marks import VOCABULARIES
from kubetide.units.time import Instant, format_rfc3339

_HISTORY = 12

KINDS = ("pod", "hpa", "node", "nodegroup")
"""What can be asked about."""


class WhyError(KubetideError):
    """Nothing of that name was there at that time; the text names what was."""


def explain_object(folder: Path, kind: str, name: str, *, namespace: str, at: Instant | None) -> str:
    """Says in plain words why an object is as it is.

    Args:
        folder: Where a run keeps its records.
        kind: One of ``KINDS``.
        name: The object's name; ``namespace`` counts for pods and HPAs.
        at: The time asked about; None is the end of the records.
    Raises: RecordError, WhyError.
    """
    if kind == "hpa":
        return _why_hpa(folder, (namespace, name), at)
    core = NodesCore()
    subject = f"{namespace}/{name}" if kind == "pod" else name
    last, history = _bring_to(core, folder, "nodes", at, subject)
    _finish(core, last)
    try:
        if kind == "pod":
            lines = _pod_lines(explain_pod(core.state, (namespace, name), last.now))
        elif kind == "node":
            lines = _node_lines(explain_node(core.state, name, last.now))
        else:
            lines = _group_lines(explain_group(core.state, name, last.now))
    except KeyError:
        if history:
            lines = [f"There is no {kind} {subject} any more at this time."]
        else:
            there = {
                "pod": [f"{key[0]}/{key[1]}" for key in core.state.pods],
                "node": list(core.state.nodes),
                "nodegroup": list(core.state.groups),
            }[kind]
            raise _nothing(kind, subject, there, last.now) from None
    return _text(f"{kind} {subject}", last.now, lines, history)


def _why_hpa(folder: Path, key: tuple[str, str], at: Instant | None) -> str:
    core = HorizontalCore()
    subject = f"{key[0]}/{key[1]}"
    last, history = _bring_to(core, folder, "horizontal", at, subject)
    try:
        explanation = explain_hpa(core.state, key, last.now)
    except KeyError:
        there = [f"{namespace}/{name}" for namespace, name in core.state.specs]
        raise _nothing("hpa", subject, there, last.now) from None
    return _text(f"hpa {subject}", last.now, explanation.lines()[1:], history)


def _bring_to(
    core: Core, folder: Path, loop: str, at: Instant | None, subject: str
) -> tuple[Record, list[str]]:
    """Applies all records up to ``at``, the last one not yet decided; gives that one and what was decided before."""
    waiting: list[Record] = []
    history: deque[str] = deque(maxlen=_HISTORY)
    vocabulary = VOCABULARIES[loop]
    for record in read_records(folder, loop):
        if at is not None and record.now > at and waiting:
            break
        if record.full:
            waiting.clear()
        waiting.append(record)
        for reason in record.reasons:
            if (vocabulary.is_action(reason) and reason.subject == subject) or _names(reason, subject):
                history.append(f"{format_rfc3339(record.now)} {vocabulary.text(reason)}")
    if not waiting:
        raise RecordError(f"no whole record of the {loop} loop under {folder} yet; try again in a moment")
    for record in waiting[:-1]:
        core.apply(bytes(record.state), full=record.full)
        core.decide(record.now)
        core.absorb(bytes(record.outcomes), record.now)
    core.apply(bytes(waiting[-1].state), full=waiting[-1].full)
    return waiting[-1], _without_repeats(history)


def _finish(core: Core, record: Record) -> None:
    core.decide(record.now)
    core.absorb(bytes(record.outcomes), record.now)


def _names(reason: Reason, subject: str) -> bool:
    return reason.fields.get("pod") == subject


def _without_repeats(lines: Iterable[str]) -> list[str]:
    """Leaves out what only says again what was said before."""
    kept: list[str] = []
    said = ""
    for line in lines:
        text = line.partition(" ")[2]
        if text != said:
            kept.append(line)
        said = text
    return kept


def _nothing(kind: str, subject: str, there: list[str], at: Instant) -> WhyError:
    near = difflib.get_close_matches(subject, there, n=3)
    if near:
        hint = f"did you mean {', '.join(near)}?"
    elif there:
        hint = f"there are {len(there)}, the first is {min(there)}"
    else:
        hint = "there is none at that time"
    return WhyError(f"no {kind} {subject} at {format_rfc3339(at)}; {hint}; --at chooses another time")


def _text(title: str, at: Instant, lines: list[str], history: list[str]) -> str:
    text = [f"{title} at {format_rfc3339(at)}", *(f"  {line}" for line in lines)]
    if history:
        text += ["", "What was decided before:", *(f"  {line}" for line in history)]
    return "\n".join(text)


def _pod_lines(found: PodExplanation) -> list[str]:
    lines = [found.sentence]
    for verdict in found.groups:
        lines += _verdict_lines(verdict)
    return lines


def _verdict_lines(verdict: GroupVerdict) -> list[str]:
    lines = [f"group {verdict.group}: {'takes it' if verdict.takes else f'no, {verdict.why}'}"]
    if verdict.template:
        lines.append(f"  template: {verdict.template}")
    if verdict.remedy is not None:
        sure = "verified by deciding again" if verdict.remedy.verified else "not enough alone"
        lines.append(f"  would help: {verdict.remedy.text} ({sure})")
    return lines


def _node_lines(found: NodeExplanation) -> list[str]:
    lines = [found.sentence, f"group: {found.group or 'none'}"]
    if found.utilization is not None:
        lines.append(f"utilization: {found.utilization:.3g}")
    if found.since is not None and found.status == "unneeded":
        lines.append(f"unneeded since {format_rfc3339(found.since)}")
    return lines


def _group_lines(found: GroupExplanation) -> list[str]:
    lines = [
        (
            f"size: {found.target_size} wanted, {found.ready} ready, {found.upcoming} on the way, "
            f"bounds {found.min_size} to {found.max_size}"
        ),
        f"template: {found.template or 'none'}",
    ]
    if found.allocatable:
        lines.append("  " + ", ".join(f"{name} {value}" for name, value in sorted(found.allocatable.items())))
    lines += [f"  differs: {text}" for text in found.differs]
    lines += [f"cannot grow: {text}" for text in found.obstacles]
    return lines
