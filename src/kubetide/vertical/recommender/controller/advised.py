"""Workloads that get a recommendation without a VPA object: an option beyond upstream (``advise_selector``).

Each stands in as a VPA that changes no pod and is nowhere written. Its name, such as ``deployment:web``, is one that no
object can have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.meta import ApiObject, Key, ObjectMeta, controller_of
from kubetide.objects.vpa import OFF, UpdatePolicy, VerticalPodAutoscaler, VpaSpec
from kubetide.units.selectors import Selector

_KINDS = ("DaemonSet", "Deployment", "StatefulSet")


def stand_ins(
    selector: Selector,
    caches: Mapping[str, Mapping[Key, ApiObject]],
    vpas: Iterable[VerticalPodAutoscaler],
) -> dict[Key, VerticalPodAutoscaler]:
    """Return a stand-in VPA for each workload whose labels match, that has no owner and is no VPA's target.

    Args:
        caches: Controllers by kind's name and key.
    """
    taken = {
        (vpa.metadata.namespace, ref.kind, ref.name)
        for vpa in vpas
        if (ref := vpa.spec.target_ref) is not None
    }
    found: dict[Key, VerticalPodAutoscaler] = {}
    for kind in _KINDS:
        for (namespace, name), one in sorted(caches.get(kind, {}).items()):
            matches = selector.matches(one.metadata.labels or {})
            if matches and (namespace, kind, name) not in taken and controller_of(one.metadata) is None:
                key = namespace, f"{kind.lower()}:{name}"
                found[key] = VerticalPodAutoscaler(
                    metadata=ObjectMeta(namespace=namespace, name=key[1]),
                    spec=VpaSpec(
                        target_ref=CrossVersionObjectReference(api_version="apps/v1", kind=kind, name=name),
                        update_policy=UpdatePolicy(update_mode=OFF),
                    ),
                )
    return found
