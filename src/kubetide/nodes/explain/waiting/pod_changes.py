"""Changes of a pod that remove one rejection: each returns the changed pod and a description.

What they give is a guess that the caller verifies by deciding again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kubetide.nodes.facts.amounts import amount_text, floor_amount, lower_requests
from kubetide.objects.node import Taint
from kubetide.objects.pod import Container, Pod, PodAffinity, Toleration
from kubetide.objects.vpa import UPDATES_ANNOTATION
from kubetide.scheduling import Refusal
from kubetide.scheduling.filters.taint_toleration import tolerates
from kubetide.units.time import Instant

_MOST_SKEW = 64
_UPDATED_BY = re.compile("Pod resources updated by ([^:]+):")
"""Source: vertical-pod-autoscaler 1.8.1, the annotation that its admission controller writes."""


class Change(msgspec.Struct, frozen=True):
    """Something that must be different. ``what`` is a sentence in the imperative.

    ``until`` is set where nothing but waiting is asked for. ``nodes`` is what nodes of a new group would have in the place
    of the change: ``label disk=ssd``; empty for a change that a new group does not make needless.
    """

    kind: str
    what: str
    until: Instant | None = None
    nodes: str = ""


Changed = tuple[Pod, Change]


def without_shorter_waits(changes: Sequence[Change]) -> list[Change]:
    """Return the changes, but of several waits for the cloud only the longest. Where two end together, the later change stays."""
    waits = [one for one in reversed(changes) if one.kind == "backoff"]
    longest = max(waits, key=lambda one: one.until or 0, default=None)
    return [one for one in changes if one.kind != "backoff" or one is longest]


def ask_less(pod: Pod, refusal: Refusal) -> Changed | None:
    """Return the pod with requests lowered to what is free; None if nothing is free or pod slots are short."""
    targets: dict[str, int] = {}
    parts: list[str] = []
    for short in refusal.numbers:
        least = floor_amount(short.resource, short.free)
        if short.resource == "pods" or least <= 0:
            return None  # nothing is left of it: asking for less does not help
        targets[short.resource] = least
        requested, fits = amount_text(short.resource, short.requested), amount_text(short.resource, least)
        parts.append(f"lower {short.resource} request from {requested} to <= {fits}")
    if not targets:
        return None
    return lower_requests(pod, targets), Change("request", " and ".join(parts) + _set_by(pod, targets))


def _set_by(pod: Pod, resources: Iterable[str]) -> str:
    """Return which VPA sets the requests of these resources, and how it sets less; empty where none does."""
    said = (pod.metadata.annotations or {}).get(UPDATES_ANNOTATION, "")
    found = _UPDATED_BY.match(said)
    if found is None or not any(f"{resource} request" in said for resource in resources):
        return ""
    return f", which VPA {found[1]} sets: give it that maxAllowed, no higher minAllowed, and delete the pod"


def tolerate(pod: Pod, taints: Iterable[Taint]) -> Changed | None:
    """Return the pod with a toleration of the first taint that rejects it."""
    tolerations = pod.spec.tolerations or ()
    for taint in taints:
        if taint.effect in {"NoSchedule", "NoExecute"} and not tolerates(tolerations, taint):
            added = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
            value = f"={taint.value}" if taint.value else ""
            changed = replace(pod, spec=replace(pod.spec, tolerations=(*tolerations, added)))
            return changed, Change("toleration", f"tolerate taint {taint.key}{value}:{taint.effect}")
    return None


def labels_missing(pod: Pod, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that a node lacks for the pod's nodeSelector and its first required affinity term."""
    needed = dict(pod.spec.node_selector or {})
    affinity = pod.spec.affinity
    required = (
        affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if affinity is not None and affinity.node_affinity is not None
        else None
    )
    for term in (required.node_selector_terms or ())[:1] if required is not None else ():
        for requirement in term.match_expressions or ():
            if requirement.operator == "In" and requirement.values:
                if labels.get(requirement.key) not in requirement.values:
                    needed[requirement.key] = requirement.values[0]
            elif requirement.operator == "Exists" and requirement.key not in labels:
                needed[requirement.key] = ""
    return {name: value for name, value in sorted(needed.items()) if labels.get(name) != value}


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as people write them."""
    return ", ".join(f"{name}={value}" for name, value in labels.items())


def spread_less(pod: Pod, passes: Callable[[Pod], bool]) -> Changed | None:
    """Return the pod with one ``maxSkew`` raised as little as needed, or without one hard spread constraint."""
    rules = pod.spec.topology_spread_constraints or ()
    hard = [at for at, rule in enumerate(rules) if rule.when_unsatisfiable == "DoNotSchedule"]
    for more in range(1, _MOST_SKEW):
        for at in hard:
            rule = rules[at]
            wider = replace(rule, max_skew=rule.max_skew + more)
            changed = _with_rules(pod, (*rules[:at], wider, *rules[at + 1 :]))
            if passes(changed):
                text = f"raise maxSkew over {rule.topology_key} from {rule.max_skew} to {wider.max_skew}"
                return changed, Change("spread", text)
    for at in hard:
        changed = _with_rules(pod, (*rules[:at], *rules[at + 1 :]))
        if passes(changed):
            text = f"drop the hard spread constraint over {rules[at].topology_key}"
            return changed, Change("spread", text)
    return None


def relax_inter_pod_rules(pod: Pod, passes: Callable[[Pod], bool]) -> Changed | None:
    """Return the pod without one required term about other pods; None if the others' terms reject it."""
    affinity = pod.spec.affinity
    if affinity is None:
        return None
    for field, name in (("pod_affinity", "podAffinity"), ("pod_anti_affinity", "podAntiAffinity")):
        given: PodAffinity | None = getattr(affinity, field)
        terms = (given.required_during_scheduling_ignored_during_execution if given else None) or ()
        for at, term in enumerate(terms):
            assert given is not None, "there are terms"
            rest = (*terms[:at], *terms[at + 1 :]) or None
            left = replace(given, required_during_scheduling_ignored_during_execution=rest)
            changed = replace(pod, spec=replace(pod.spec, affinity=replace(affinity, **{field: left})))
            if passes(changed):
                text = f"drop the required {name} over {term.topology_key}"
                return changed, Change("affinity", text)
    return None


def give_up_ports(pod: Pod, passes: Callable[[Pod], bool]) -> Changed | None:
    """Return the pod without one host port; None if no single one helps."""
    containers = pod.spec.containers or ()
    for at, container in enumerate(containers):
        for number, port in enumerate(container.ports or ()):
            if port.host_port <= 0:
                continue
            free = _without_host_port(container, number)
            changed = replace(
                pod, spec=replace(pod.spec, containers=(*containers[:at], free, *containers[at + 1 :]))
            )
            if passes(changed):
                protocol = port.protocol or "TCP"
                return changed, Change("port", f"do without host port {port.host_port}/{protocol}")
    return None


def _without_host_port(container: Container, number: int) -> Container:
    ports = list(container.ports or ())
    ports[number] = replace(ports[number], host_port=0)
    return replace(container, ports=tuple(ports))


def _with_rules(pod: Pod, rules: tuple[object, ...]) -> Pod:
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=rules or None))
