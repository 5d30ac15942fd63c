"""Pod classes: pods that every filter treats alike, interned.

Deciding per class instead of per pod is what keeps large clusters cheap: a class is compiled once
(requests, selectors, ports), and a snapshot keeps what it found out about a class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec

from kubetide.objects.pod import Container, Pod, PodAffinity, Toleration
from kubetide.scheduling.pods.device_use import device_use
from kubetide.scheduling.pods.exact_key import exact_key
from kubetide.scheduling.pods.node_selection import HOSTNAME, NodeSelection, compile_selection
from kubetide.scheduling.pods.preferences import NO_TERMS, PodTerms, preferences_of
from kubetide.scheduling.pods.resources import PODS, pod_requests
from kubetide.scheduling.pods.terms import (
    SpreadConstraint,
    compile_preferred,
    compile_spread,
    compile_terms,
    selector_message,
)
from kubetide.scheduling.pods.volume_use import Disk, DiskPlace, claims_of, disks_of
from kubetide.units.quantity import QuantityError
from kubetide.units.selectors import SelectorError

ANY_IP = "0.0.0.0"  # noqa: S104  # the API's word for every address of a node, nothing is bound here


class Port(NamedTuple):
    """A host port that a pod claims."""

    protocol: str
    port: int
    ip: str


class Unasked(NamedTuple):
    """Scoring's default requests of pods on a node for containers that do not name a resource."""

    resource: str


ColumnKey = str | Port | Unasked
"""What a node has a stock of: a resource, or the use of a host port (of which it has none to give), and what only scoring counts."""

T = TypeVar("T")


class Need(NamedTuple):
    """At least ``minimum`` of a column must be free on the node."""

    key: ColumnKey
    minimum: int


Charges = tuple[tuple[ColumnKey, int], ...]
"""What a pod takes from its node."""


class Use(msgspec.Struct, frozen=True):
    """What columns hold of a pod, on any node."""

    pod_class: PodClass
    charges: Charges
    terminating: bool = False


class PodClass:
    """What the filters read of a pod; equal for pods that the filters treat alike.

    Attributes:
        key: Exact content; two classes are equal when their keys are.
        requests: What the pod asks for, int64: milli-CPU, bytes, counts; core resources first.
        needs: What must be left on its node: a place, and what it asks for of resources.
        charges: What it takes from a node: the requests, one of ``pods``, its host ports.
        error: Not empty when the pod cannot be evaluated; such a pod fits nowhere.
        affinity, anti_affinity: Required terms about other pods.
        guarding: The terms of ``anti_affinity``, to be looked up.
        spread: The spread constraints that keep it off nodes.
        terms_error, spread_error: Not empty when those cannot be read; such a pod fits nowhere.
        spreads_by_hostname: Whether any spread constraint, soft ones too, is about single nodes.
        names_nodes: Whether copies of one template may get different verdicts.
        claims, disks: What its volumes use.
        disks_at: The disks by what those share that may exclude each other.
        features: What a node must have declared.
        devices: What it asks for of devices; None for most pods.
        node_key: Equal for classes that pass the same node objects; None where more than selection,
            tolerations and the like play a part (volumes, claims, what cannot be read).
        use: What columns hold of a pod of the class; not of one that is resized or being deleted.
        preferences: What it would rather have, for scoring.
        inter_pod_key: Equal for classes whose inter-pod rules are the same, and that those of other pods treat alike; None as with ``node_key``.
    """

    __slots__ = (
        "_hash",
        "affinity",
        "anti_affinity",
        "charges",
        "claims",
        "devices",
        "disks",
        "disks_at",
        "error",
        "features",
        "guarding",
        "inter_pod_key",
        "key",
        "labels",
        "names_nodes",
        "namespace",
        "needs",
        "node_key",
        "node_name",
        "ports",
        "preferences",
        "requests",
        "selection",
        "spread",
        "spread_error",
        "spreads_by_hostname",
        "terms_error",
        "tolerations",
        "use",
    )

    def __init__(self, key: bytes, pod: Pod, *, node_name: str) -> None:
        spec = pod.spec
        self.key = key
        self._hash = hash(key)
        self.namespace = pod.metadata.namespace
        self.labels: Mapping[str, str] = MappingProxyType(dict(pod.metadata.labels or {}))
        self.node_name = node_name
        self.error = ""
        requests: dict[str, int] = {}
        try:
            requests = pod_requests(pod)
        except QuantityError as error:
            self.error = f"a resource request cannot be read: {error.__cause__}"  # the pod is one of many
        self.requests: Mapping[str, int] = MappingProxyType(requests)
        self.needs = (Need(PODS, 1), *(Need(name, amount) for name, amount in requests.items() if amount > 0))
        self.ports = _host_ports(pod)
        self.tolerations: tuple[Toleration, ...] = spec.tolerations or ()
        affinity = spec.affinity.node_affinity if spec.affinity else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        self.selection: NodeSelection | None = compile_selection(spec.node_selector, required)
        self.names_nodes = bool(node_name) or (self.selection is not None and self.selection.names_nodes)
        self.charges = charges_of(requests, self.ports)
        self.use = Use(self, self.charges)
        terms, self.terms_error = _terms(pod)
        self.affinity, self.anti_affinity = terms.affinity, terms.anti_affinity
        self.guarding = frozenset(self.anti_affinity)
        self.spread, self.spread_error = _spread(pod)
        self.spreads_by_hostname = any(
            one.topology_key == HOSTNAME for one in spec.topology_spread_constraints or ()
        )
        self.claims = claims_of(pod)
        self.disks = disks_of(pod)
        self.disks_at = _by_place(self.disks)
        self.features = _features(pod)
        self.devices = None if self.error else device_use(pod, requests)
        self.node_key, self.inter_pod_key = self._parts(pod)
        self.preferences = preferences_of(pod, requests, terms)

    def _parts(self, pod: Pod) -> tuple[bytes | None, bytes | None]:
        if self.error or self.terms_error or self.spread_error:
            return None, None
        if self.claims or self.disks or pod.spec.resource_claims:
            return None, None
        spec = pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        selected = (self.node_name, spec.node_selector, affinity, spec.tolerations, self.devices)
        return (
            exact_key((*selected, self.features)),
            exact_key(
                (
                    self.namespace,
                    pod.metadata.labels,
                    spec.affinity,
                    spec.topology_spread_constraints,
                    *selected,
                )
            ),
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, PodClass) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"PodClass({self.namespace}, requests={dict(self.requests)})"


def _by_place(disks: tuple[Disk, ...]) -> Mapping[DiskPlace, list[Disk]]:
    found: dict[DiskPlace, list[Disk]] = {}
    for disk in disks:
        found.setdefault(disk.place, []).append(disk)
    return found


def _features(pod: Pod) -> tuple[str, ...]:
    """Return the node features that the spec makes use of.

    They are RestartAllContainers as the answer to a container's exit, and the node's network for a pod
    with users of its own.
    """
    spec = pod.spec
    features: list[str] = []
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        if any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules or ()):
            features.append("RestartAllContainersOnContainerExits")
            break
    if spec.host_network and spec.host_users is False:
        features.append("UserNamespacesHostNetworkSupport")
    return tuple(features)


def _terms(pod: Pod) -> tuple[PodTerms, str]:
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS, ""
    errors: list[str] = []
    near, apart, namespace = affinity.pod_affinity, affinity.pod_anti_affinity, pod.metadata.namespace

    def read(name: str, compiled: Callable[[PodAffinity | None, str], T], given: PodAffinity | None) -> T:
        try:
            return compiled(given, namespace)
        except SelectorError as error:
            errors.append(f"{name}: {selector_message(error)}")
            return compiled(None, namespace)

    terms = PodTerms(
        read("requiredAffinityTerms", compile_terms, near),
        read("requiredAntiAffinityTerms", compile_terms, apart),
        read("preferredAffinityTerms", compile_preferred, near),
        read("preferredAntiAffinityTerms", compile_preferred, apart),
    )
    return terms, errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""


def _spread(pod: Pod) -> tuple[tuple[SpreadConstraint, ...], str]:
    given = pod.spec.topology_spread_constraints
    if not given:
        return (), ""
    try:
        return compile_spread(given, pod.metadata.labels or {}), ""
    except SelectorError as error:
        return (), selector_message(error)


def charges_of(requests: Mapping[str, int], ports: tuple[Port, ...]) -> Charges:
    """Return what a pod takes from a node: amounts, a pod slot, host ports."""
    taken: list[tuple[ColumnKey, int]] = [(name, amount) for name, amount in requests.items() if amount]
    return (*taken, (PODS, 1), *((port, 1) for port in ports))


def _host_ports(pod: Pod) -> tuple[Port, ...]:
    """Host ports of containers and of sidecars; plain init containers do not count."""
    claimed: dict[Port, None] = {}
    sidecars: list[Container] = [
        one for one in pod.spec.init_containers or () if one.restart_policy == "Always"
    ]
    for container in (*(pod.spec.containers or ()), *sidecars):
        for port in container.ports or ():
            if port.host_port > 0:
                claimed[Port(port.protocol or "TCP", port.host_port, port.host_ip or ANY_IP)] = None
    return tuple(claimed)
