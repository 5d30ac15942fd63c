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
from typing import Any

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Core, Record
from kubetide.loop import BUILT_IN, Explainer, LoopEntry, loop_entry, loop_names
from kubetide.ports.errors import KubetideError
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.records import Header, RecordError, read_records, recorded_loops
from kubetide.simulate.marks import marks_of
from kubetide.simulate.recorded_plugins import RecordedPlugins, recorded_plugins
from kubetide.simulate.redeciding import finish, redecide
from kubetide.simulate.when import Moment, start_of_records
from kubetide.units.time import Instant, format_rfc3339

_HISTORY = 12
_WITH_REASONS = 3


class WhyError(KubetideError):
    """Nothing of that name was there at that time, or the run was not; the text names what was."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """Something that was decided about the object, and why."""

    record: Record
    text: str
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Redecided:
    """Where the records lead: the last of them that counts, and what was decided about the object until then."""

    last: Record
    decided: tuple[_Decided, ...]
    is_over: bool
    """Whether a time after the end of the records was asked for."""


def explain_object(
    folder: Path, kind: str, name: str, *, namespace: str, at: Moment | None, view: str = ""
) -> str:
    """Return in plain words why an object is as it is.

    Args:
        folder: Where a run keeps its records.
        kind: One of ``explained_kinds``.
        name: The object's name; ``namespace`` counts for those that have one.
        at: The moment asked about; None is the end of the records. After that end the answer is that of
            the end, and says so.
        view: Another answer about the same object, one of its explainer's ``views``.
    Raises: RecordError; WhyError where there is no such object or kind, or the run had not begun.
    """
    loop, explainer = _explainer_of(kind, folder)
    assert loop.core is not None, "a loop that explains has a core"
    core = loop.core()
    subject = f"{namespace}/{name}" if explainer.namespaced else name
    with recorded_plugins() as plugins:
        redecided = _redecide_until(core, folder, loop.name, at, subject, plugins)
        lines = _answer(explainer, core, subject, redecided, view)
    # Which role lacks a right is ours to say: the text of a refusal stays upstream's in conditions and events.
    return _text(f"{kind} {subject}", [with_hint(line, (loop.name,)) for line in lines], redecided)


def _answer(explainer: Explainer, core: Core, subject: str, redecided: _Redecided, view: str) -> list[str]:
    last = redecided.last
    if explainer.after_decision:
        finish(core, last)
    try:
        return explainer.lines(core, subject, last.now, view)
    except KeyError:
        if not redecided.decided:
            raise _nothing(explainer.kind, subject, explainer.names(core), last.now) from None
        return [f"There is no {explainer.kind} {subject} any more at this time."]


def objects_of(folder: Path, at: Moment | None) -> dict[str, list[str]]:
    """Return the names of all objects that can be asked about at a moment, by kind; None is the end of the records.

    Names of kinds with namespaces are ``namespace/name``. Loops that had not begun know none.

    Raises: RecordError.
    """
    found: dict[str, list[str]] = {}
    recorded = set(recorded_loops(folder))
    for entry in _loops(folder):
        if entry.core is None or entry.name not in recorded or not entry.explainers:
            continue
        core = entry.core()
        with recorded_plugins() as plugins:
            try:
                redecided = _redecide_until(core, folder, entry.name, at, "", plugins)
            except WhyError:
                continue
            finish(core, redecided.last)
        for explainer in entry.explainers:
            found[explainer.kind] = sorted(explainer.names(core))
    return found


def explained_kinds(folder: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Return what can be asked about, and the views of each: of the package's loops, and of those in the folder."""
    return {one.kind: one.views for entry in _loops(folder) for one in entry.explainers}


def _loops(folder: Path | None) -> list[LoopEntry[Any]]:
    recorded = () if folder is None else recorded_loops(folder)
    known = [name for name in recorded if name in loop_names()]
    return [loop_entry(name) for name in dict.fromkeys((*BUILT_IN, *known))]


def _explainer_of(kind: str, folder: Path) -> tuple[LoopEntry[Any], Explainer]:
    for entry in _loops(folder):
        for explainer in entry.explainers:
            if explainer.kind == kind:
                return entry, explainer
    raise WhyError(f"nothing is known of a {kind!r}; ask about {', '.join(explained_kinds(folder))}")


def _redecide_until(
    core: Core, folder: Path, loop: str, at: Moment | None, subject: str, plugins: RecordedPlugins
) -> _Redecided:
    """Apply all records until the end of the moment, the last one not yet decided."""
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
    redecide(core, waiting)
    return _Redecided(last, _without_repeats(decided), is_over)


def redecide_until(
    core: Core, folder: Path, loop: str, at: Moment | None, plugins: RecordedPlugins
) -> Record:
    """Bring a core to where a moment's records have been decided and taken in; return the last of them.

    Raises: RecordError; WhyError where the run had not begun.
    """
    last = _redecide_until(core, folder, loop, at, "", plugins).last
    finish(core, last)
    return last


def _is_later(record: Record, at: Moment, before: Sequence[Record]) -> bool:
    """Return whether the record is past the moment that is asked about."""
    if record.now >= at.end:
        return True
    # All phases of a tick belong together.
    return at.first_tick and bool(before) and before[-1].now >= at.at and before[-1].tick != record.tick


def _not_begun(folder: Path, loop: str, first: Record) -> WhyError:
    """Say when the run begins; ``first`` is a record of the loop that is past the moment asked about."""
    start = format_rfc3339(start_of_records(folder))
    earliest = format_rfc3339(next(iter(read_records(folder, loop)), first).now)
    later = "" if earliest == start else f", and the {loop} loop decides from {earliest} on"
    return WhyError(f"the run begins at {start}{later}; choose such a time with --at")


def _decided_about(record: Record, subject: str) -> list[_Decided]:
    """Return what the record says was done about the object (for a group: about its nodes too), and what names the pod."""
    vocabulary = loop_entry(record.loop).vocabulary
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


def _is_about(reason: Reason, subject: str) -> bool:
    if subject in {reason.subject, reason.fields.get("group"), reason.fields.get("pod")}:
        return True
    # A container of a VPA.
    return "/" in subject and reason.subject.startswith(f"{subject}/")


def _names(reason: Reason, subject: str) -> bool:
    return reason.fields.get("pod") == subject


def _without_repeats(decided: Sequence[_Decided]) -> tuple[_Decided, ...]:
    """Leave out what only says again what was said before."""
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


def _text(title: str, lines: list[str], redecided: _Redecided) -> str:
    last = redecided.last
    end = format_rfc3339(last.now)
    text = [f"the records end at {end}; this is the state then"] if redecided.is_over else []
    text += [f"{title} at {end}", *(f"  {line}" for line in lines)]
    before = [one for one in redecided.decided if one.record.now != last.now]
    now = [one for one in redecided.decided if one.record.now == last.now]
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
