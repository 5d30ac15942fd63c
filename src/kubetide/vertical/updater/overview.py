"""Pods whose requests are to change and that wait for it, and why, for the page of ``kubetide status``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubetide.explain.reasons import Reason
from kubetide.loop.status import Overview, Table
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.quantity import QuantityError
from kubetide.units.time import Instant
from kubetide.vertical.resources.boost import is_boosted
from kubetide.vertical.resources.capping import running_containers
from kubetide.vertical.updater.core import UpdaterCore
from kubetide.vertical.updater.reasons import LOOP_SUBJECT, VOCABULARY
from kubetide.vertical.updater.rules.controlled import controlled_pods
from kubetide.vertical.updater.rules.priority import (
    Candidate,
    capped_for,
    has_quick_oom,
    priority_of,
    why_not,
)
from kubetide.vertical.updater.state import State

_DONE: Final = frozenset({"Evicted", "Resized", "Unboosted"})
_COLUMNS: Final = ("vpa", "pods", "why they wait", "more")


def _tables(core: UpdaterCore, now: Instant) -> tuple[Table, ...]:
    rows = [
        (owner, len(pods), why, f"ask: kubetide explain update {min(pods)}")
        for (owner, why), pods in sorted(_waiting(core, now).items())
    ]
    waiting = sum(row[1] for row in rows)
    sentence = f"Pods that wait for their new requests: {waiting}." if waiting else ""
    return (Table("pods with outdated requests", _COLUMNS, tuple(rows), sentence),)


def pods_of_vpa(core: UpdaterCore, subject: str, now: Instant) -> str:
    """Return how many pods of a VPA wait to be changed, and why; empty for a VPA that changes no running pod."""
    pods = next((pods for vpa, pods in _controlled(core) if "/".join(key_of(vpa)) == subject), [])
    if not pods:
        return ""
    total, parts = len(pods), []
    for (owner, why), names in sorted(_waiting(core, now).items()):
        if owner == subject:
            said, waits = _share(len(names), total, "is", "are"), "waits" if len(names) == 1 else "wait"
            parts.append(f"{said} to be changed and {waits}: {why or 'the last loop gave no reason'}.")
    last = _last_by_subject(core.reasons)
    mine = [last.get("/".join(key_of(pod))) for pod in pods]
    if done := sum(one is not None and one.code in _DONE for one in mine):
        parts.append(f"{_share(done, total, 'was', 'were')} changed just now.")
    if parts:
        return " ".join(parts)
    reasons = {_text(one) for one in mine}
    why = reasons.pop() if len(reasons) == 1 else ""
    none = "Its pod is not" if total == 1 else f"None of its {total} pods is"
    return f"{none} to be changed now{f': {why}' if why else ''}."


def _share(count: int, total: int, singular: str, plural: str) -> str:
    """Return how many of the pods, with the verb."""
    if total == 1:
        return f"Its pod {singular}"
    pods = f"{count} of its {total} pods" if count < total else f"All its {total} pods"
    return f"{pods} {singular if count == 1 else plural}"


def _waiting(core: UpdaterCore, now: Instant) -> dict[tuple[str, str], list[str]]:
    """Return the pods whose requests are to change and that wait for it, by VPA and by what they wait for."""
    last = _last_by_subject(core.reasons)
    waiting: dict[tuple[str, str], list[str]] = {}
    for vpa, pods in _controlled(core):
        owner = "/".join(key_of(vpa))
        for pod in pods:
            subject = "/".join(key_of(pod))
            mine = last.get(subject)
            if (mine is None or mine.code not in _DONE) and _is_to_change(core.state, vpa, pod, now):
                why = _text(mine or last.get(owner) or last.get(LOOP_SUBJECT))
                waiting.setdefault((owner, why), []).append(subject)
    return waiting


def _controlled(core: UpdaterCore) -> Iterable[tuple[VerticalPodAutoscaler, list[Pod]]]:
    return controlled_pods(core.state)


def _last_by_subject(reasons: Sequence[Reason]) -> dict[str, Reason]:
    """Return the last reason of each subject; of a pod without a group the reason why it has none, where there is one."""
    last: dict[str, Reason] = {}
    for reason in reasons:
        if reason.code == "NoGroup" and (reason.subject in last or reason.fields.get("vpa") in last):
            continue
        last[reason.subject] = reason
    return last


def _is_to_change(state: State, vpa: VerticalPodAutoscaler, pod: Pod, now: Instant) -> bool:
    """Return whether the pod's requests differ so much from the recommendation that it is to be updated."""
    if is_boosted(pod):
        return False
    try:
        capped = capped_for(pod, vpa, state.bounds(pod.metadata.namespace))
        candidate = Candidate(pod, running_containers(pod), capped or {})
    except QuantityError:
        return False
    quick_oom = has_quick_oom(pod, vpa.spec, state.settings, now)
    return not why_not(pod, priority_of(candidate), state.settings, now, quick_oom=quick_oom)


def _text(reason: Reason | None) -> str:
    """Return what the last loop found, without the name of what it is about and without a pod's own numbers."""
    if reason is None:
        return ""
    if reason.code == "Queued":
        return "its requests are to change"
    return VOCABULARY.text(reason).removeprefix(f"{reason.subject}: ")


def _holds(core: UpdaterCore) -> tuple[str, ...]:
    """Return what keeps all pods from being changed."""
    found = (one for one in core.reasons if one.subject == LOOP_SUBJECT and one.code != "NoVpa")
    return tuple(map(_text, found))


OVERVIEW = Overview(_tables, _holds)
