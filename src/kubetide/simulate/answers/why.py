"""Answers why, from the records of a run, also while it goes on.

The loop's own explanation is made on its state at the time that is asked about (``simulate.moments``), and what was
decided about the object before is listed with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

import msgspec

from kubetide.loop import (
    BUILT_IN,
    EXPLAINED,
    RECORDED,
    VIEWS,
    Explainer,
    Explaining,
    explaining,
    is_loop,
)
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.recording.records import recorded_loops
from kubetide.simulate.answers.moments import Moments, NotBegun, StateAt, WhyError
from kubetide.simulate.answers.past_decisions import PastDecision, decided_until, said_a_week_before
from kubetide.simulate.answers.when import Moment
from kubetide.units.time import Instant, format_rfc3339

__all__ = [
    "Answer",
    "Decided",
    "WhyError",
    "answer_about",
    "answer_text",
    "explain_object",
    "explained_kinds",
    "kinds_of",
    "objects_of",
    "scalers_of",
    "targets_of",
    "views_of",
]

SCALING = ("horizontal", "schedules", "recommender")
"""Loops whose objects scale a workload: its replicas before its requests."""

_HISTORY = 12
_WITH_REASONS = 3
_MOST_NEAR = 3
"""Names that are offered in the place of one that is not there."""


class Decided(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision about an object: when, what, and why."""

    at: str
    text: str
    why: tuple[str, ...] = ()


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The explanation of an object's state.

    Attributes:
        kind, name: Of the object; the name with its namespace, where it has one.
        at: The time of the state that is explained.
        over: Whether a time after the end of the records was asked for.
        lines: The explanation, a sentence each.
        now, before: What was decided about it in that tick, and earlier.
        is_cut: Whether more was decided earlier than ``before`` has.
    """

    kind: str
    name: str
    at: str
    over: bool
    lines: tuple[str, ...]
    now: tuple[Decided, ...]
    before: tuple[Decided, ...]
    is_cut: bool = False


def explain_object(
    run: Path | Moments, kind: str, name: str, *, namespace: str, at: Moment | None, view: str = ""
) -> str:
    """Return the explanation of an object as text. Arguments and errors are those of ``answer_about``."""
    return answer_text(answer_about(run, kind, name, namespace=namespace, at=at, view=view, whole=False))


def answer_about(
    run: Path | Moments,
    kind: str,
    name: str,
    *,
    namespace: str,
    at: Moment | None,
    view: str = "",
    whole: bool = True,
) -> Answer:
    """Return the explanation of an object's state.

    Args:
        run: Where a run keeps its records, or the moments of that folder.
        kind: One of ``explained_kinds``.
        name: The object's name; ``namespace`` counts for those that have one.
        at: The moment asked about; None is the end of the records. After that end the answer is that of
            the end, and says so.
        view: Another answer about the same object, one of its explainer's ``views``.
        whole: With all that was decided before, and not only the last.
    Raises: RecordError; WhyError where there is no such object, kind or view, or the run had not begun.
    """
    moments = Moments.of(run)
    loop, explainer = _explainer_of(kind, moments.folder)
    if view and view not in explainer.views:
        raise WhyError(f"a {kind} has no view {view!r}; its views are {', '.join(explainer.views) or 'none'}")
    subject = f"{namespace}/{name}" if explainer.namespaced else name
    # Cached moments answer the next question too, and follow all objects.
    alone = None if explainer.alone is None or moments is run else partial(explainer.alone, subject)
    with moments.state(loop.name, at, decided=explainer.after_decision, alone=alone) as state:
        decided = decided_until(loop.name, state, subject, None if whole else _HISTORY)
        lines = _answer(loop, explainer, state, subject, view, is_known=bool(decided))
        lines[1:1] = _since_last_week(loop.name, explainer, state, subject)
    if explainer.added_by:
        lines[0] = f"{lines[0]} {_added(moments, explainer, subject, at)}".rstrip()
    if explainer.why_not_changed and (why := explainer.why_not_changed(bytes(state.last.outcomes), subject)):
        lines[0] = f"{lines[0]} {why}{_since(decided, state.last.now)}"
    # Which role lacks a right is ours to say: the text of a refusal stays upstream's in conditions and events.
    explained = [with_hint(line, (loop.name,)) for line in lines]
    now = [one for one in decided if one.record.now == state.last.now]
    before = [one for one in decided if one.record.now != state.last.now]
    shown = before if whole else before[-_HISTORY:]
    return Answer(
        kind=kind,
        name=subject,
        at=format_rfc3339(state.last.now),
        over=state.is_over,
        lines=tuple(explained),
        now=tuple(map(_told, now)),
        before=tuple(map(_told, shown)),
        is_cut=len(shown) < len(before),
    )


def _added(moments: Moments, explainer: Explainer, subject: str, at: Moment | None) -> str:
    """Return what another loop adds to the answer about an object; empty if it was not there, or has nothing to add."""
    if explainer.added_by not in recorded_loops(moments.folder):
        return ""
    other = explaining(explainer.added_by)
    try:
        with moments.state(other.name, at) as state:
            return other.adds[explainer.kind](state.core, subject, state.last.now)
    except NotBegun:
        return ""


def _since_last_week(loop: str, explainer: Explainer, state: StateAt, subject: str) -> list[str]:
    """Return what a week has changed about an object; nothing for kinds that do not say, or where nothing is known of then."""
    if explainer.since_last_week is None:
        return []
    past = said_a_week_before(loop, state, subject)
    said = explainer.since_last_week(state.core, subject, state.last.now, past)
    return [said] if said else []


def _since(decided: Sequence[PastDecision], now: Instant) -> str:
    """Say since when all changes ended so, where that of this tick is not the first: records leave out what is as before."""
    since = now
    for one in reversed(decided):
        if not one.fruitless:
            break
        since = one.record.now
    return f" The same holds of every change since {format_rfc3339(since)}." if since < now else ""


def _told(one: PastDecision) -> Decided:
    again = ""
    if one.last is not None:
        times = "at" if one.repeats == 1 else f"{one.repeats} times until"
        again = f" (and again {times} {format_rfc3339(one.last)})"
    return Decided(format_rfc3339(one.record.now), f"{one.text}{again}", one.why)


def _answer(
    loop: Explaining,
    explainer: Explainer,
    state: StateAt,
    subject: str,
    view: str,
    *,
    is_known: bool,
) -> list[str]:
    try:
        return explainer.lines(state.core, subject, state.last.now, view)
    except KeyError:
        if subject in explainer.names(state.core):
            raise
        # Decisions are known by name alone, and may be about an object of another kind: a group in the place of a node.
        others = () if explainer.namespaced else loop.explainers
        for other in others:
            if subject in other.names(state.core):
                raise WhyError(
                    f"{subject} is no {explainer.kind}, but a {other.kind}: ask about {other.kind} {subject}"
                ) from None
        if not is_known:
            there = explainer.names(state.core)
            raise _nothing(explainer.kind, subject, there, state.last.now) from None
        return [f"There is no {explainer.kind} {subject} any more at this time."]


def objects_of(
    run: Path | Moments, at: Moment | None, kinds: Collection[str] | None = None
) -> dict[str, list[str]]:
    """Return the names of all explainable objects at a moment, by kind; None means the end of the records.

    Names of kinds with namespaces are ``namespace/name``. Loops that had not begun know none.

    Args:
        run: Where a run keeps its records, or the moments of that folder.
        kinds: Only these; None for all.
    Raises: RecordError.
    """
    moments = Moments.of(run)
    folder = moments.folder
    found: dict[str, list[str]] = {}
    recorded = set(recorded_loops(folder))
    if kinds is None:
        loops = [explaining(name) for name in (*BUILT_IN, *_others(folder)) if name in recorded]
    else:
        loops = [_explainer_of(kind, folder)[0] for kind in kinds]
    for entry in {one.name: one for one in loops}.values():
        asked = [one for one in entry.explainers if kinds is None or one.kind in kinds]
        if entry.core is None or entry.name not in recorded:
            continue
        for explainer in asked:
            try:
                with moments.state(entry.name, at, decided=explainer.after_decision) as state:
                    found[explainer.kind] = sorted(explainer.names(state.core))
            except NotBegun:
                continue
    return found


def scalers_of(run: Path | Moments, target: str, at: Moment | None) -> list[tuple[str, str]]:
    """Return kind and name of the autoscalers of a workload, ``KIND/NAMESPACE/NAME``, at a moment; VPAs last.

    Raises: RecordError.
    """
    return [(kind, name) for kind, name, said in _scaled(run, at) if said == target]


def targets_of(run: Path | Moments, kind: str) -> list[str]:
    """Return the scaled workloads of a kind at the end of the records, as ``namespace/name``."""
    scaled = _scaled(run, None)
    return sorted({said.removeprefix(f"{kind}/") for *_, said in scaled if said.startswith(f"{kind}/")})


def _scaled(run: Path | Moments, at: Moment | None) -> list[tuple[str, str, str]]:
    """Return kind and name of all that scales a workload, and that workload."""
    moments = Moments.of(run)
    found: list[tuple[str, str, str]] = []
    recorded = recorded_loops(moments.folder)
    for entry in (explaining(name) for name in SCALING if name in recorded):
        for explainer in entry.explainers:
            if entry.core is None or explainer.targets is None:
                continue
            alone = None if moments is run else explainer.targets_alone
            try:
                with moments.state(entry.name, at, decided=explainer.after_decision, alone=alone) as state:
                    targets = sorted(explainer.targets(state.core).items())
            except NotBegun:
                continue
            found += [(explainer.kind, name, target) for name, target in targets]
    return found


def explained_kinds(folder: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Return the explainable kinds with their views: of this package's loops, and of those in the folder."""
    others = [one for name in _others(folder) for one in explaining(name).explainers]
    return {kind: VIEWS.get(kind, ()) for kind in EXPLAINED} | {one.kind: one.views for one in others}


def kinds_of(folder: Path | None = None) -> list[str]:
    """Return the explainable kinds, without loading the loops of this package."""
    others = [one.kind for name in _others(folder) for one in explaining(name).explainers]
    return [*EXPLAINED, *others]


def views_of(kind: str, folder: Path | None = None) -> tuple[str, ...]:
    """Return the views of a kind. Raises WhyError."""
    return _explainer_of(kind, folder)[1].views


def _others(folder: Path | None) -> list[str]:
    """Return the recorded loops beside those of this package that run by default."""
    recorded = () if folder is None else recorded_loops(folder)
    return [name for name in recorded if name not in BUILT_IN and (name in RECORDED or is_loop(name))]


def _loops(folder: Path | None) -> list[Explaining]:
    return [explaining(name) for name in (*BUILT_IN, *_others(folder))]


def _explainer_of(kind: str, folder: Path | None) -> tuple[Explaining, Explainer]:
    loops = [explaining(EXPLAINED[kind])] if kind in EXPLAINED else _loops(folder)
    for loop in loops:
        for explainer in loop.explainers:
            if explainer.kind == kind:
                return loop, explainer
    raise WhyError(f"nothing is known of a {kind!r}; ask about {', '.join(kinds_of(folder))}")


def _nothing(kind: str, subject: str, there: list[str], at: Instant) -> WhyError:
    import difflib  # noqa: PLC0415  only where there is nothing to explain

    # The name of a workload stands for its pods, and a name without its namespace for those of any.
    name = subject.rpartition("/")[2]
    begins = sorted(one for one in there if one.startswith(f"{subject}-"))
    elsewhere = sorted(one for one in there if one.rpartition("/")[2] == name)
    # By the name alone: a namespace in common makes no two names alike.
    bare = {one.rpartition("/")[2]: one for one in there}
    like = [bare[one] for one in difflib.get_close_matches(name, bare, n=_MOST_NEAR, cutoff=0.5)]
    near = list(dict.fromkeys((*begins, *elsewhere, *like)))[:_MOST_NEAR]
    if near:
        hint = f"did you mean {', '.join(near)}?"
    elif len(there) == 1:
        hint = f"there is only {there[0]}"
    elif there:
        hint = f"there are {len(there)}, the first is {min(there)}"
    else:
        hint = "there is none at that time"
    return WhyError(f"no {kind} {subject} at {format_rfc3339(at)}; {hint} (--at chooses another time)")


def answer_text(answer: Answer, *, whole: bool = False) -> str:
    """Return an answer for people; ``whole``: with all earlier decisions, and all reasons."""
    text = [f"the records end at {answer.at}; this is the state then"] if answer.over else []
    text += [f"{answer.kind} {answer.name} at {answer.at}", *(f"  {line}" for line in answer.lines)]
    if answer.now:
        text += ["", "Decided at this moment:", *_decided_lines(answer.now, with_reasons=len(answer.now))]
    if answer.before:
        shown = answer.before if whole else answer.before[-_HISTORY:]
        text += ["", "What was decided before:"]
        if answer.is_cut or len(answer.before) > len(shown):
            text.append("  ... and more, earlier; -o wide shows all")
        text += _decided_lines(shown, with_reasons=len(shown) if whole else _WITH_REASONS)
    return "\n".join(text)


def _decided_lines(decided: Sequence[Decided], *, with_reasons: int) -> list[str]:
    """One line a decision; the last so many of those that have reasons with them below."""
    explained = [index for index, one in enumerate(decided) if one.why][-with_reasons:]
    lines: list[str] = []
    for index, one in enumerate(decided):
        lines.append(f"  {one.at} {one.text}")
        if index in explained:
            lines += [f"    {line}" for line in one.why]
    return lines
