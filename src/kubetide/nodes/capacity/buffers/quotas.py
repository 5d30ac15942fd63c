"""How many pods of a buffer the ResourceQuotas of its namespace leave.

Source: Cluster Autoscaler, capacitybuffer/controller/resourcequotas.go, which counts pods since September 2026.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kubetide.objects.meta import Key, LabelSelector, LabelSelectorRequirement, key_of
from kubetide.objects.pod import Affinity, Pod, PodAffinityTerm
from kubetide.objects.quota import ResourceQuota, ScopedResourceSelectorRequirement
from kubetide.scheduling import classify
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.selectors import Selector, SelectorError

_NANOS: Final = 10**9
_NANOS_OF_MILLI: Final = 10**6
_PRIORITY_CLASS: Final = "PriorityClass"
_EXISTS: Final = "Exists"


class QuotaLimit(NamedTuple):
    """How many pods one quota leaves, and its resource that leaves the fewest.

    Attributes:
        reserved: What older buffers have of that resource, in billionths of its unit.
    """

    quota: ResourceQuota
    resource: str
    pods: int
    reserved: int


class QuotaReservations:
    """What buffers have reserved of each quota so far; the oldest buffer takes first."""

    def __init__(self, quotas: Mapping[str, Sequence[ResourceQuota]]) -> None:
        """Take the quotas by namespace; nothing is reserved yet."""
        self._quotas = quotas
        self._reserved: dict[Key, dict[str, int]] = {}
        """By quota and resource, in billionths of the resource's unit."""

    def limits(self, pod: Pod) -> list[QuotaLimit]:
        """Return the limit of each quota that counts the pod, which has a namespace and the API server's defaults.

        A quota without a resource that the pod asks for limits nothing, nor does one that cannot be read.
        """
        asked = _asked(pod)
        found = []
        for quota in self._quotas.get(pod.metadata.namespace, ()):
            try:
                if _counts(quota, pod, asked) and (limit := self._limit(quota, asked)) is not None:
                    found.append(limit)
            except (SelectorError, QuantityError):
                continue
        return found

    def take(self, pod: Pod, count: int) -> tuple[int, list[QuotaLimit]]:
        """Reserve as many of ``count`` such pods as all quotas leave; return how many, and the limits below ``count``."""
        asked, limits = _asked(pod), self.limits(pod)
        allowed = min([count, *(one.pods for one in limits)])
        for quota in (one.quota for one in limits):
            reserved = self._reserved.setdefault(key_of(quota), {})
            for name in quota.status.hard or ():
                if name in asked:
                    reserved[name] = reserved.get(name, 0) + asked[name] * allowed
        return allowed, [one for one in limits if one.pods < count]

    def _limit(self, quota: ResourceQuota, asked: Mapping[str, int]) -> QuotaLimit | None:
        hard, used = quota.status.hard or {}, quota.status.used or {}
        reserved = self._reserved.get(key_of(quota), {})
        found = []
        for name in sorted(hard):
            if asked.get(name, 0) > 0:
                taken = reserved.get(name, 0)
                left = _nanos(hard[name]) - _nanos(used.get(name, 0)) - taken
                found.append(QuotaLimit(quota, name, max(0, left // asked[name]), taken))
        return min(found, key=lambda one: one.pods, default=None)


def _asked(pod: Pod) -> dict[str, int]:
    """Return what quotas count of one pod, in billionths: its requests by both of their names, and itself.

    As upstream, neither limits nor ``count/pods``.
    """
    found = {
        name: amount * (_NANOS_OF_MILLI if name == "cpu" else _NANOS)
        for name, amount in classify(pod).requests.items()
    }
    found["pods"] = _NANOS
    return {**found, **{f"requests.{name}": amount for name, amount in found.items()}}


def _nanos(text: str | float) -> int:
    return Quantity.parse(text).exact_nano()


def _counts(quota: ResourceQuota, pod: Pod, asked: Mapping[str, int]) -> bool:
    """Return whether the pod is in all scopes of the quota. Raises SelectorError."""
    spec = quota.spec
    scopes = [
        ScopedResourceSelectorRequirement(scope_name=name, operator=_EXISTS) for name in spec.scopes or ()
    ]
    selector = spec.scope_selector
    scopes += (selector.match_expressions or ()) if selector is not None else ()
    return all(_is_in(scope, pod, asked) for scope in scopes)


def _is_in(scope: ScopedResourceSelectorRequirement, pod: Pod, asked: Mapping[str, int]) -> bool:
    """Return whether the pod is in the scope; upstream looks at an operator only for priority classes."""
    best_effort = "cpu" not in asked and "memory" not in asked
    match scope.scope_name:
        case "NotTerminating":
            # As upstream, also with activeDeadlineSeconds.
            return True
        case "BestEffort":
            return best_effort
        case "NotBestEffort":
            return not best_effort
        case "PriorityClass":
            return _has_priority_class(scope, pod.spec.priority_class_name)
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(pod.spec.affinity)
    return False


def _has_priority_class(scope: ScopedResourceSelectorRequirement, name: str) -> bool:
    term = LabelSelectorRequirement(key=_PRIORITY_CLASS, operator=scope.operator, values=scope.values)
    selector = Selector.from_object(LabelSelector(match_expressions=(term,)))
    return selector.matches({_PRIORITY_CLASS: name} if name else {})


def _crosses_namespaces(affinity: Affinity | None) -> bool:
    """Return whether a term of pod affinity or anti-affinity names namespaces."""
    if affinity is None:
        return False
    terms: list[PodAffinityTerm] = []
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not None:
            terms += part.required_during_scheduling_ignored_during_execution or ()
            preferred = part.preferred_during_scheduling_ignored_during_execution or ()
            terms += [one.pod_affinity_term for one in preferred]
    return any(one.namespaces or one.namespace_selector is not None for one in terms)
