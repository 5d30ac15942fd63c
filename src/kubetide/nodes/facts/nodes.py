"""Node facts: readiness, deletion taints, fitness as a template.

Names of taints, annotations and labels are upstream's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from kubetide.nodes.facts.machine_amounts import has_machine_amounts
from kubetide.nodes.settings import Settings
from kubetide.objects.node import Node, Taint, node_condition
from kubetide.ports.cloud import GPU_RESOURCES
from kubetide.units.quantity import whole_or_zero
from kubetide.units.time import Duration, Instant, after, instant_of, minutes, parse_duration, seconds

TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
FILL_LATER: Final = tuple(f"kubetide.dev/fill-later-{number}" for number in (1, 2, 3))
"""Soft taints of --steer-pods-to-fuller-nodes; the emptier a node is the more of them it has."""
CONSOLIDATION: Final = "kubetide.dev/consolidation"
"""A node that consolidation takes away once the pods on it have ended that may not be evicted: no new ones come."""
NOMINATION_TAINT: Final = "startup-taint.cluster-autoscaler.kubernetes.io/kubetide-nominates"
"""A start-up taint: a new node that has it takes no pods until the loop has nominated the pods planned for it."""
OWN_TAINTS: Final = frozenset({TO_BE_DELETED, DELETION_CANDIDATE, CONSOLIDATION, *FILL_LATER})
"""Taints that the node loop puts on nodes; no new node has them."""
TEMPLATE_LABEL: Final = "cluster-autoscaler.kubernetes.io/template-node"
DAEMON_SET_POD_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/daemonset-pod"
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"

_GKE_GPU: Final = "cloud.google.com/gke-accelerator"
_GKE_GPU_DEVICES: Final = "cloud.google.com/gke-gpu-dra-driver"
_IGNORE_PREFIX: Final = "ignore-taint.cluster-autoscaler.kubernetes.io/"
_STARTUP_PREFIXES: Final = ("startup-taint.cluster-autoscaler.kubernetes.io/", _IGNORE_PREFIX)
_STATUS_PREFIX: Final = "status-taint.cluster-autoscaler.kubernetes.io/"
CONDITION_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/pid-pressure",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "cloud.google.com/impending-node-termination",
        "NodeWithImpairedVolumes",
    }
)
_UNREADY_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
    }
)

_READINESS_CONDITIONS: Final = frozenset({"Ready", "DiskPressure", "NetworkUnavailable"})

DELETION_WINDOW: Duration = minutes(5)
"""A node counts as being deleted for this long after it was tainted; then something went wrong."""

_EVER: Final = Instant(-1)
"""Before every instant that there is."""

Readiness = Literal["", "Unready", "ResourceUnready"]


def readiness(node: Node, settings: Settings) -> Readiness:
    """Return why the node is not ready; empty when it is.

    Source: Cluster Autoscaler, node readiness: conditions, three taints, startup taints, and a GPU
    label without an allocatable GPU.
    """
    ready = node_condition(node, "Ready")
    if ready is None or ready.status in {"False", "Unknown"}:
        return "Unready"
    for condition in node.status.conditions or ():
        if condition.type in {"DiskPressure", "NetworkUnavailable"} and condition.status == "True":
            return "Unready"
    taints = node.spec.taints or ()
    if any(taint.key in _UNREADY_TAINTS for taint in taints):
        return "Unready"
    if node.spec.unschedulable:
        return ""  # upstream looks for what is still to come on schedulable nodes alone
    labels = node.metadata.labels or {}
    waits_for_gpus = bool(settings.gpu_label) and settings.gpu_label in labels and not allocatable_gpus(node)
    if waits_for_gpus and not has_gpu_devices(node, settings.gpu_label):
        return "ResourceUnready"
    if any(is_startup_taint(taint.key, settings) for taint in taints):
        return "Unready"
    return ""


def is_suspended(node: Node) -> bool:
    """Return whether the node says that it is suspended: its group counts it, but neither as ready nor as unready."""
    first = next((one for one in node.status.conditions or () if one.type == "Suspended"), None)
    return first is not None and first.status == "True"


def allocatable_gpus(node: Node) -> int:
    """Return how many GPUs the node offers now: of several kinds the first that it has any of counts.

    Source: Cluster Autoscaler, the GPUs of a node over all vendors.
    """
    allocatable = node.status.allocatable or {}
    offered = (whole_or_zero(allocatable[name]) for name in GPU_RESOURCES if name in allocatable)
    return next((count for count in offered if count), 0)


def has_gpu_devices(node: Node, gpu_label: str) -> bool:
    """Return whether pods claim the node's GPUs as devices, so that none is ever allocatable; GKE says so by a label.

    Source: Cluster Autoscaler (Jul 2026), GCE provider, GPU configuration of a node.
    """
    return gpu_label == _GKE_GPU and (node.metadata.labels or {}).get(_GKE_GPU_DEVICES) == "true"


def is_startup_taint(key: str, settings: Settings) -> bool:
    """Return whether a node counts as unready while it has this taint."""
    return key in settings.startup_taint or key.startswith(
        (*_STARTUP_PREFIXES, *settings.startup_taint_prefix)
    )


def template_taints(taints: Sequence[Taint] | None, settings: Settings) -> tuple[Taint, ...]:
    """Return the taints that a new node of the same kind keeps: condition and deletion taints are left out."""
    return tuple(
        taint
        for taint in taints or ()
        if taint.key not in CONDITION_TAINTS
        and taint.key not in OWN_TAINTS
        and taint.key not in settings.status_taint
        and not taint.key.startswith(_STATUS_PREFIX)
        and not is_startup_taint(taint.key, settings)
    )


def taint_type(key: str, settings: Settings) -> str:
    """Return the name under which upstream counts a taint: its key where it is a known one, else its kind."""
    if key.startswith(_IGNORE_PREFIX):
        return _IGNORE_PREFIX
    if key in CONDITION_TAINTS or key in {TO_BE_DELETED, DELETION_CANDIDATE}:
        return key
    if is_startup_taint(key, settings):
        return "startup-taint"
    if key in settings.status_taint or key.startswith(_STATUS_PREFIX):
        return "status-taint"
    return "other"


def is_starting_after(node: Node, since: Instant) -> bool:
    """Return whether the node was created in that second or later."""
    created = instant_of(node.metadata.creation_timestamp)
    return created is not None and after(created, seconds(1)) > since


def has_taint(node: Node, key: str) -> bool:
    """Return whether the node has a taint with this key."""
    taints = node.spec.taints
    return bool(taints) and any(taint.key == key for taint in taints or ())


def tainted_for_deletion(node: Node) -> Instant | None:
    """Return since when the node is tainted for deletion, from the taint's value; None if there is none to read."""
    for taint in node.spec.taints or ():
        if taint.key == TO_BE_DELETED and taint.value.isascii() and taint.value.isdigit():
            return Instant(seconds(int(taint.value)))
    return None


def deletion_window_ends(node: Node) -> Instant | None:
    """Return until when the node counts as being deleted; None without the deletion taint."""
    since = tainted_for_deletion(node)
    return None if since is None else after(since, DELETION_WINDOW)


def is_being_deleted(node: Node, now: Instant) -> bool:
    """Return whether the node was tainted for deletion less than five minutes ago."""
    ends = deletion_window_ends(node)
    return ends is not None and now < ends


class Health(NamedTuple):
    """The health of a node as its object states it, independent of the time.

    Attributes:
        unready: Why the node is not ready; empty when it is.
        stable_after: After which instant new nodes of the group can be expected to look like this one;
            None for never.
    """

    unready: Readiness
    stable_after: Instant | None

    def is_good_template(self, now: Instant) -> bool:
        """Return whether new nodes of the group can be expected to look like this one."""
        return self.stable_after is not None and self.stable_after < now


def health_of(node: Node, settings: Settings) -> Health:
    """Read the node's health.

    Source: Cluster Autoscaler: a template has been ready for at least a minute, is schedulable, and not being deleted.
    It has been ready since the last change of the three conditions that count. Beyond upstream, with
    --templates-by-instance-type: it says of itself what a machine may have.
    """
    unready = readiness(node, settings)
    if unready or node.spec.unschedulable or has_taint(node, TO_BE_DELETED):
        return Health(unready, None)
    if settings.templates_by_instance_type and not has_machine_amounts(node.status.capacity or {}):
        return Health(unready, None)
    changes = [
        changed
        for condition in node.status.conditions or ()
        if condition.type in _READINESS_CONDITIONS
        and (changed := instant_of(condition.last_transition_time)) is not None
    ]
    # One minute to the instant counts as stable only once it has passed.
    return Health(unready, after(max(changes), seconds(60)) if changes else _EVER)


def is_virtual_kubelet(node: Node) -> bool:
    """Return whether the node is no real machine; such nodes do not count towards limits."""
    return (node.metadata.labels or {}).get("type") == "virtual-kubelet"


def duration_or(text: str | None, default: Duration) -> Duration:
    """Return the duration in a cloud's tag; the flag's value if the tag is missing or unreadable."""
    try:
        return parse_duration(text) if text else default
    except ValueError:
        return default
