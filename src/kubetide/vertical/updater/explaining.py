"""The updater as far as its records explain it."""

from __future__ import annotations

from typing import Final

from kubetide.loop import Explainer, Explaining
from kubetide.objects.meta import Key
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.time import Instant
from kubetide.vertical.resources.policies import WITHOUT_UPDATES, update_mode
from kubetide.vertical.updater.at_target import at_target_sentence
from kubetide.vertical.updater.core import UpdaterCore
from kubetide.vertical.updater.overview import pods_of_vpa
from kubetide.vertical.updater.reasons import VOCABULARY, explain_pod
from kubetide.vertical.updater.rules.controlled import controlled_pods
from kubetide.vertical.updater.state import State


def _lines(core: UpdaterCore, subject: str, now: Instant, view: str) -> list[str]:
    del now, view
    namespace, _, name = subject.partition("/")
    if (namespace, name) not in core.state.pods:
        raise KeyError(subject)
    return explain_pod(core.reasons, subject) or _without_reason(core, (namespace, name))


def _without_reason(core: UpdaterCore, key: Key) -> list[str]:
    """Return why the last loop had no reason for a pod: what it found of the pod's VPA and of all pods, or its mode."""
    subject = "/".join(key)
    for any_mode in (False, True):
        vpa = _controlling(core.state, key, any_mode=any_mode)
        if vpa is None:
            continue
        name = f"{vpa.metadata.namespace}/{vpa.metadata.name}"
        mode = WITHOUT_UPDATES.get(update_mode(vpa.spec))
        said = explain_pod(core.reasons, subject, vpa=name) if mode is None else []
        return said or [f"{subject}: VPA {name} selects it; {mode or 'the last loop said nothing of it'}"]
    return [f"{subject}: no VPA selects it"]


def _controlling(state: State, key: Key, *, any_mode: bool) -> VerticalPodAutoscaler | None:
    """Return the VPA that controls a pod; of those that update pods, or of all."""
    controlled = controlled_pods(state, any_mode=any_mode)
    found = (
        vpa
        for vpa, pods in controlled
        if any((pod.metadata.namespace, pod.metadata.name) == key for pod in pods)
    )
    return next(found, None)


def _about_vpa(core: UpdaterCore, subject: str, now: Instant) -> str:
    """Return which pods of a VPA are to be changed, and what they would request then."""
    return " ".join(filter(None, (pods_of_vpa(core, subject, now), at_target_sentence(core.state, subject))))


EXPLAINING: Final = Explaining(
    "updater",
    UpdaterCore,
    VOCABULARY,
    (
        Explainer(
            "update",
            _lines,
            lambda core: [f"{namespace}/{name}" for namespace, name in core.state.pods],
            namespaced=True,
        ),
    ),
    adds={"vpa": _about_vpa},
)
