"""Answers why, from the records of a run: also of one that is still running.

The loop's core is brought to the time that is asked about by deciding the recorded ticks again from
the last whole state on; then the loop's own explanation is made on that state, and what was decided
about the object before is listed with it.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
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
from kubetide.nodes.node_fit import explain_on_nodes
from kubetide.ports.errors import KubetideError
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.records import Header, RecordError, read_records
from kubetide.simulate.marks import VOCABULARIES, marks_of
from kubetide.simulate.node_lines import node_lines
from kubetide.simulate.recorded_plugins import RecordedPlugins, recorded_plugins
from kubetide.simulate.when import Moment, start_of_records
from kubetide.units.time import Instant, format_rfc3339

_HISTORY = 12
_WITH_REASONS = 3

KINDS = ("pod", "hpa", "node", "nodegroup")
"""What can be asked about."""


class WhyError(KubetideError):
    """Nothing of that name was there at that time, or the run was not; the text names what was."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """Something that was decided about the object, and why."""

    record: Record
    text: str
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Brought:
    """Where the records lead: the last of them that counts, and what was decided about the object until then."""

    last: Record
    decided: tuple[_Decided, ...]
    is_over: bool
    """Whether a time after the end of the records was asked for."""


def explain_object(
    folder: Path, kind: str, name: str, *, namespace: str, at: Moment | None, by_node: bool = False
) -> str:
    """Return in plain words why an object is as it is.

    Args:
        folder: Where a run keeps its records.
        kind: One of ``KINDS``.
        name: The object's name; ``namespace`` counts for pods and HPAs.
        at: The moment asked about; None is the end of the records. After that end the answer is that of
            the end, and says so.
        by_node: Of a pod, what each node says to it, in the place of what each group says.

    Raises: RecordError; WhyError where there is no such object, or the run had not begun.
    """
    with recorded_plugins() as plugins:
        if kind == "hpa":
            return _why_hpa(folder, (namespace, name), at, plugins)
        return _why_nodes(folder, kind, name, namespace, at, plugins, by_node=by_node)


def _why_nodes(
    folder: Path,
    kind: str,
    name: str,
    namespace: str,
    at: Moment | None,
    plugins: RecordedPlugins,
    *,
    by_node: bool,
) -> str:
    core = NodesCore()
    subject = f"{namespace}/{name}" if kind == "pod" else name
    brought = _bring_to(core, folder, "nodes", at, subject, plugins)
    last = brought.last
    _finish(core, last)
    try:
        if kind == "pod" and by_node:
            lines = node_lines(explain_on_nodes(core.state, (namespace, name)))
        elif kind == "pod":
            lines = _pod_lines(explain_pod(core.state, (namespace, name), last.now))
        elif kind == "node":
            lines = _node_lines(explain_node(core.state, name, last.now))
        else:
            lines = _group_lines(explain_group(core.state, name, last.now))
    except KeyError:
        if brought.decided:
            lines = [f"There is no {kind} {subject} any more at this time."]
        else:
            there = {
                "pod": [f"{key[0]}/{key[1]}" for key in core.state.pods],
                "node": list(core.state.nodes),
                "nodegroup": list(core.state.groups),
            }[kind]
            raise _nothing(kind, subject, there, last.now) from None
    return _text(f"{kind} {subject}", lines, brought)


def _why_hpa(folder: Path, key: tuple[str, str], at: Moment | None, plugins: RecordedPlugins) -> str:
    core = HorizontalCore()
    subject = f"{key[0]}/{key[1]}"
    brought = _bring_to(core, folder, "horizontal", at, subject, plugins)
    try:
        explanation = explain_hpa(core.state, key, brought.last.now)
    except KeyError:
        there = [f"{namespace}/{name}" for namespace, name in core.state.specs]
        raise _nothing("hpa", subject, there, brought.last.now) from None
    # Which role lacks a right is ours to say: the text of a refusal stays upstream's in conditions and events.
    lines = [with_hint(line, ("horizontal",)) for line in explanation.lines()[1:]]
    return _text(f"hpa {subject}", lines, brought)


def _bring_to(
    core: Core, folder: Path, loop: str, at: Moment | None, subject: str, plugins: RecordedPlugins
) -> _Brought:
    """Applies all records until the end of the moment, the last one not yet decided."""
    waiting: list[Record] = []
    decided: list[_Decided] = []
    following: Record | None = None
    headers: list[Header] = []
    header: Header | None = None
    for record in read_records(folder, loop, on_segment=headers.append):
        if at is not None and _is_later(record, at, waiting):
            following = record
            break
        if record.full:
            waiting.clear()
            header = headers[-1]
        waiting.append(record)
        decided += _decided_about(record, subject)
    if following is not None and not waiting:
        raise _not_begun(folder, loop, following)
    if not waiting:
        raise RecordError(f"no whole record of the {loop} loop under {folder} yet; try again in a moment")
    last = waiting[-1]
    is_over = at is not None and following is None and at.at > last.now
    if is_over and at is not None and at.next_day:
        raise _not_begun(folder, loop, last)
    if header is not None:
        plugins.take_up(header)
    for record in waiting[:-1]:
        core.apply(bytes(record.state), full=record.full)
        core.decide(record.now)
        core.absorb(bytes(record.outcomes), record.now)
    core.apply(bytes(last.state), full=last.full)
    return _Brought(last, _without_repeats(decided), is_over)


def _is_later(record: Record, at: Moment, before: Sequence[Record]) -> bool:
    """Whether the record is past the moment that is asked about."""
    if record.now >= at.end:
        return True
    # All phases of a tick belong together.
    return at.first_tick and bool(before) and before[-1].now >= at.at and before[-1].tick != record.tick


def _not_begun(folder: Path, loop: str, first: Record) -> WhyError:
    """Says when the run begins; ``first`` is a record of the loop that is past the moment asked about."""
    start = format_rfc3339(start_of_records(folder))
    earliest = format_rfc3339(next(iter(read_records(folder, loop)), first).now)
    later = "" if earliest == start else f", and the {loop} loop decides from {earliest} on"
    return WhyError(f"the run begins at {start}{later}; choose such a time with --at")


def _decided_about(record: Record, subject: str) -> list[_Decided]:
    """Gives what the record says was done about the object (for a group: about its nodes too), and what names the pod."""
    vocabulary = VOCABULARIES[record.loop]
    if not any(_is_about(reason, subject) for reason in record.reasons):
        return []
    marks = iter(marks_of(record))
    found = []
    for reason in record.reasons:
        mark = next(marks) if vocabulary.is_action(reason) else None
        if _names(reason, subject):
            found.append(_Decided(record, vocabulary.text(reason)))
        elif mark is not None and _is_about(reason, subject):
            found.append(_Decided(record, mark.title, mark.why))
    return found


def _finish(core: Core, record: Record) -> None:
    core.decide(record.now)
    core.absorb(bytes(record.outcomes), record.now)


def _is_about(reason: Reason, subject: str) -> bool:
    return subject in {reason.subject, reason.fields.get("group"), reason.fields.get("pod")}


def _names(reason: Reason, subject: str) -> bool:
    return reason.fields.get("pod") == subject


def _without_repeats(decided: Sequence[_Decided]) -> tuple[_Decided, ...]:
    """Leaves out what only says again what was said before."""
    kept: list[_Decided] = []
    for one in decided:
        if not kept or kept[-1].text != one.text:
            kept.append(one)
    return tuple(kept)


def _nothing(kind: str, subject: str, there: list[str], at: Instant) -> WhyError:
    near = difflib.get_close_matches(subject, there, n=3)
    if near:
        hint = f"did you mean {', '.join(near)}?"
    elif there:
        hint = f"there are {len(there)}, the first is {min(there)}"
    else:
        hint = "there is none at that time"
    return WhyError(f"no {kind} {subject} at {format_rfc3339(at)}; {hint}; --at chooses another time")


def _text(title: str, lines: list[str], brought: _Brought) -> str:
    last = brought.last
    end = format_rfc3339(last.now)
    text = [f"the records end at {end}; this is the state then"] if brought.is_over else []
    text += [f"{title} at {end}", *(f"  {line}" for line in lines)]
    before = [one for one in brought.decided if one.record.tick != last.tick]
    now = [one for one in brought.decided if one.record.tick == last.tick]
    if now:
        text += ["", "Decided at this moment:", *_decided_lines(now, with_reasons=len(now))]
    if before:
        shown = before[-_HISTORY:]
        text += ["", "What was decided before:"]
        if len(before) > len(shown):
            text.append(f"  ... and {len(before) - len(shown)} earlier")
        text += _decided_lines(shown, with_reasons=_WITH_REASONS)
    return "\n".join(text)


def _decided_lines(decided: Sequence[_Decided], *, with_reasons: int) -> list[str]:
    """One line a decision; the last so many of those that have reasons with them below."""
    explained = [index for index, one in enumerate(decided) if one.why][-with_reasons:]
    lines: list[str] = []
    for index, one in enumerate(decided):
        lines.append(f"  {format_rfc3339(one.record.now)} {one.text}")
        if index in explained:
            lines += [f"    {line}" for line in one.why]
    return lines


def _pod_lines(found: PodExplanation) -> list[str]:
    lines = [found.sentence]
    if found.bargain:
        lines.append(found.bargain)
    for verdict in found.groups:
        lines += _verdict_lines(verdict)
    return lines


def _verdict_lines(verdict: GroupVerdict) -> list[str]:
    lines = [f"group {verdict.group}: {'takes it' if verdict.takes else f'no, {verdict.why}'}"]
    if verdict.template:
        lines.append(f"  template: {verdict.template}")
    if verdict.remedy is not None:
        sure = "verified by deciding again" if verdict.remedy.verified else "not enough alone"
        if verdict.remedy.verified and verdict.remedy.needs_delivery:
            sure += ", if the cloud then delivers"
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
