"""Commands, outcomes and results of the node loop.

``Commands.actions`` are carried out in order and ``Outcomes.results`` has one entry for each, in the
same order. All of it is data, so that a record holds it and a replay can compare it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.objects.meta import Key
from kubetide.plan.board import Capacity
from kubetide.ports.cloud import NewGroup, NodeGroup
from kubetide.ports.errors import CloudCause, CloudErrorType
from kubetide.units.time import Duration, Instant


class DecreaseTarget(msgspec.Struct, frozen=True, tag_field="op", tag="decreaseTarget"):
    """Lower a target by nodes that never came. ``why``: ``timeout``, or ``size`` that was wrong for too long."""

    group: str
    delta: int
    why: Literal["timeout", "size"]


class DeleteInstances(msgspec.Struct, frozen=True, tag_field="op", tag="deleteInstances"):
    """Delete machines that never became nodes."""

    group: str
    provider_ids: tuple[str, ...]
    why: Literal["unregistered", "failed"]
    force: bool = False


class IncreaseSize(msgspec.Struct, frozen=True, tag_field="op", tag="increaseSize", omit_defaults=True):
    """Raise a target. If it fails, later ones of the same list are not tried (unless ``parallel``)."""

    group: str
    delta: int
    size: int
    """The target before."""
    max_size: int
    why: Literal["pods", "min_size"] = "pods"
    parallel: bool = False
    atomic: bool = False
    """All the nodes or none, where the cloud can promise that."""


class CreateGroup(msgspec.Struct, frozen=True, tag_field="op", tag="createGroup"):
    """Create an empty node group. ``Outcome.made`` is the group; if it fails, its increases are not tried."""

    new: NewGroup


class DeleteGroup(msgspec.Struct, frozen=True, tag_field="op", tag="deleteGroup"):
    """Delete an empty group that this program created."""

    group: str


class AskExpander(msgspec.Struct, frozen=True, tag_field="op", tag="askExpander"):
    """Ask the external expander which of these groups' options are best. ``Outcome.groups`` is its answer."""

    groups: tuple[str, ...]


class AddTaint(msgspec.Struct, frozen=True, tag_field="op", tag="addTaint", omit_defaults=True):
    """Set a taint on a node, replacing one with the same key; with ``cordon`` also ``spec.unschedulable``."""

    node: str
    key: str
    value: str
    effect: str
    cordon: bool = False


class RemoveTaint(msgspec.Struct, frozen=True, tag_field="op", tag="removeTaint", omit_defaults=True):
    """Remove all taints with this key from a node; with ``uncordon`` also ``spec.unschedulable``."""

    node: str
    key: str
    uncordon: bool = False


class EvictPod(msgspec.Struct, frozen=True, tag_field="op", tag="evictPod", omit_defaults=True):
    """Evict a pod from a node that is being drained."""

    namespace: str
    name: str
    uid: str
    node: str
    grace_period_s: int | None = None


class NominatePod(msgspec.Struct, frozen=True, tag_field="op", tag="nominatePod", omit_defaults=True):
    """Tell the scheduler to try a pod on a node first, and to keep the node's capacity for it meanwhile."""

    namespace: str
    name: str
    uid: str
    node: str


class DeleteNodes(msgspec.Struct, frozen=True, tag_field="op", tag="deleteNodes", omit_defaults=True):
    """Delete the machines of these nodes.

    The controller reads the nodes' pods once more before the call and refuses (outcome ``failed``)
    when a pod is there that ``expected_pods`` does not name.
    """

    group: str
    nodes: tuple[str, ...]
    provider_ids: tuple[str, ...]
    expected_pods: tuple[Key, ...] = ()


Action = (
    DecreaseTarget
    | DeleteInstances
    | IncreaseSize
    | CreateGroup
    | DeleteGroup
    | AskExpander
    | AddTaint
    | RemoveTaint
    | EvictPod
    | NominatePod
    | DeleteNodes
)


class EventRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event to write. ``kind`` is Pod, Node, ConfigMap (the status object) or CapacityBuffer."""

    kind: str
    name: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    namespace: str = ""
    uid: str = ""


NextStep = Literal[
    "scale_up",
    "place",
    "pack",
    "choose",
    "salvo",
    "scale_down",
    "simulate",
    "consolidate",
    "min_size",
    "remove_groups",
]
"""A step that follows another one in the same tick."""


class Commands(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The commands of one step.

    Attributes:
        next_step: The step that follows in the same tick; empty at the tick's end.
        read_pods: Nodes whose pods must be read from the API server for the next ``actuate`` step.
        wake_at: When the next ``actuate`` step is due; None when no deletion is in flight.
        answers: What is said on the board: capacity that is missing; replaces all former answers.
        result: Upstream's word for what the step came to (``ScaleUpSuccessful`` holds only if the increase works).
    """

    actions: tuple[Action, ...] = ()
    events: tuple[EventRecord, ...] = ()
    next_step: NextStep | Literal[""] = ""
    read_pods: tuple[str, ...] = ()
    wake_at: Instant | None = None
    answers: tuple[Capacity, ...] | None = None
    result: str = ""
    reasons: tuple[Reason, ...] = ()


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one action.

    ``skipped``: not tried, because an earlier one failed or a cap was reached. ``withheld``: not
    sent, on purpose, as the program only advises or may not act any more; neither done nor failed.
    """

    status: Literal["ok", "failed", "skipped", "withheld"] = "ok"
    error: str = ""
    error_class: str = "Other"
    error_code: str = ""
    cause: CloudCause = "Other"
    error_type: CloudErrorType = "cloudProviderError"
    """Upstream's type of the error of a call to the cloud that failed."""
    groups: tuple[str, ...] = ()
    """The answer of ``AskExpander``."""
    made: NodeGroup | None = None
    """What came of ``CreateGroup``."""
    may_be_done: bool = False
    """Whether a call that failed may have been carried out: no answer says that it was not."""

    @property
    def tried(self) -> bool:
        """Whether the call was made."""
        return self.status in {"ok", "failed"}


class Outcomes(msgspec.Struct, frozen=True, omit_defaults=True):
    """One outcome for each action of the step, in the same order.

    ``taint_latency``: how long the slowest of the taints that begin deletions took until a watch showed it; None where
    it was not measured.
    """

    results: tuple[Outcome, ...] = ()
    taint_latency: Duration | None = None


class WriteStatus(msgspec.Struct, frozen=True, tag_field="op", tag="writeStatus", omit_defaults=True):
    """Write the status of a request for capacity, if it is still the version that was read; ``resource`` is the plural name."""

    resource: str
    namespace: str
    name: str
    version: str
    status: msgspec.Raw


class DeleteRequest(msgspec.Struct, frozen=True, tag_field="op", tag="deleteRequest"):
    """Delete a ProvisioningRequest that has long been served or has failed."""

    namespace: str
    name: str
    uid: str


class CopyTemplate(msgspec.Struct, frozen=True, tag_field="op", tag="copyTemplate", omit_defaults=True):
    """Copy a PodTemplate, the template of a workload, or one of its pods, to the PodTemplate of a CapacityBuffer.

    The source is read whole when it is copied: what the loop holds of it are only the fields that it decides by.

    Attributes:
        source: Plural name of the source's kind.
        dry_run: Whether the template is that of the pod that the API server would make of the source's.
    """

    buffer: str
    buffer_uid: str
    namespace: str
    name: str
    source: str
    source_name: str
    dry_run: bool = False


Write = WriteStatus | DeleteRequest | CopyTemplate
"""What is written once a step is over; nothing is decided on what came of it before the next tick reads it."""


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The report of a step: events, the status document, reasons.

    ``status`` is the YAML of the status ConfigMap, made at the end of a tick; None otherwise.
    ``replan`` says that scale-up is to be decided again in the same tick, in place of the step that would follow.
    ``learned`` is what was learned of machines, at the end of a tick that is to keep it; None otherwise.
    """

    events: tuple[EventRecord, ...] = ()
    status: str | None = None
    learned: str | None = None
    reasons: tuple[Reason, ...] = ()
    writes: tuple[Write, ...] = ()
    replan: bool = False
    wake_at: Instant | None = None
