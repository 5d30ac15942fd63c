"""What the pods of a VPA request, and what they would at its target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.quantity import QuantityError, bytes_to_text, milli_to_text, readable
from kubetide.vertical.resources.capping import running_containers
from kubetide.vertical.updater.rules.controlled import controlled_pods
from kubetide.vertical.updater.rules.priority import capped_for
from kubetide.vertical.updater.state import State


def at_target_sentence(state: State, subject: str) -> str:
    """Return what the pods of a VPA, ``namespace/name``, would request at its target where that differs; else nothing.

    VPAs of all modes have an answer: one that changes no pod shows what it would bring.
    """
    controlled = controlled_pods(state, any_mode=True)
    found = next(((vpa, pods) for vpa, pods in controlled if "/".join(key_of(vpa)) == subject), None)
    if found is None:
        return ""
    requested, targeted = _amounts(state, *found)
    changes = [
        f"{resource} {_text(resource, targeted[resource])} in place of {_text(resource, requested[resource])}"
        for resource in sorted(targeted)
        if targeted[resource] != requested[resource]
    ]
    return f"At the target its pods request {' and '.join(changes)} in all." if changes else ""


def _amounts(
    state: State, vpa: VerticalPodAutoscaler, pods: Iterable[Pod]
) -> tuple[Counter[str], Counter[str]]:
    """Return, by resource that has a target, the sums of the requests and of the targets of all pods, in thousandths."""
    requested: Counter[str] = Counter()
    targeted: Counter[str] = Counter()
    for pod in pods:
        try:
            capped = capped_for(pod, vpa, state.bounds(pod.metadata.namespace)) or {}
            running = running_containers(pod)
        except QuantityError:
            continue
        for container in running:
            target = capped[container.name].target if container.name in capped else {}
            for resource, amount in target.items():
                targeted[resource] += amount.milli_value()
                if (request := container.requests.get(resource)) is not None:
                    requested[resource] += request.milli_value()
    return requested, targeted


def _text(resource: str, milli: int) -> str:
    return milli_to_text(milli) if resource == "cpu" else readable(bytes_to_text(milli // 1000))
