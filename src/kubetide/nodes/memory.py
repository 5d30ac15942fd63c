"""The node loop's memory between ticks; part of the state, and of every full record."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubetide.nodes.consolidation.memory import ConsolidationMemory
from kubetide.nodes.facts.new_pods import NewPod
from kubetide.nodes.scale_down.memory import ScaleDownMemory
from kubetide.objects.base import Quantities
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceSlice
from kubetide.ports.errors import CloudCause
from kubetide.units.time import Duration, Instant

MOST_JOINS = 40
"""Times of joining that are remembered of a group."""


class ScaleUpRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nodes that were asked for and have not all joined."""

    increase: int
    time: Instant
    expected_add_time: Instant
    recovered: bool = False
    """Whether an earlier process asked for them: ``time`` is when this one began."""


class BackoffEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A failed group: not asked before ``until``."""

    duration: Duration
    until: Instant
    last_failure: Instant
    error_class: str = "Other"
    error_code: str = ""
    error_message: str = ""
    cause: CloudCause = "Other"


class IncorrectSize(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group whose node count differs from its target, and since when by this difference.

    ``withheld``: whether a correction of it was withheld.
    """

    current: int
    expected: int
    first_observed: Instant
    withheld: bool = False


class SeenTemplate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the nodes of a group really looked like.

    ``node`` is the newest good node, sanitised, with the least allocatable and capacity seen of each
    resource since its instance type was first seen; ``pods`` are its DaemonSet and mirror pods, ``slices``
    its devices, without those that these pods have.
    """

    node: Node
    pods: tuple[Pod, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    from_node: str
    seen_at: Instant
    """When it was first seen so; once ``live`` is over, when it was last seen."""
    live: bool = True
    """Whether the node was there and well when last looked at."""


class SeenAmounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The least amount of each resource that machines of one instance type really had.

    ``image`` holds those of their labels that distinguish images; ``seen_at`` is when an amount was last new.
    """

    instance_type: str
    image: dict[str, str] = {}
    capacity: Quantities = {}
    allocatable: Quantities = {}
    from_node: str = ""
    from_group: str = ""
    seen_at: Instant = Instant(0)


class TimeTaken(msgspec.Struct, frozen=True, array_like=True):
    """How long a machine took, and when that was seen."""

    at: Instant
    took: Duration


class Join(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How right the template was when a node of the group joined: what it promised, and its source.

    ``errors`` has (real - promised) / promised by resource, of all resources that were promised.
    """

    node: str
    at: Instant
    took: Duration
    """From the node's creation until it was ready."""
    source: str = ""
    promised: Quantities = {}
    real: Quantities = {}
    errors: dict[str, float] = {}


class GroupLearned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts learned from the nodes of a group.

    Attributes:
        amounts: One entry for each instance type that was seen in the group, in order of type.
        startup_taints: Keys of taints that nodes begin with and have lost once they are well, in order.
        joins: How many nodes were seen from before they were well.
        starts: How long the last of them took from their creation until they were ready (``recent_times``).
        last_join: The last of them.
    """

    amounts: tuple[SeenAmounts, ...] = ()
    startup_taints: tuple[str, ...] = ()
    joins: int = 0
    starts: tuple[TimeTaken, ...] = ()
    last_join: Join | None = None


class Learned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts learned from real machines; the part of the memory that outlives the process.

    ``types`` has the amounts by instance type, one entry for each image.
    """

    types: dict[str, tuple[SeenAmounts, ...]] = {}
    groups: dict[str, GroupLearned] = {}


class Joining(msgspec.Struct, frozen=True, omit_defaults=True):
    """A young node that is not ready yet, or ready with taints that it may still lose, and the keys of all it has had."""

    taints: tuple[str, ...] = ()
    joined: bool = False


class StockOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """An offer that a cloud could not deliver: not asked for before ``until``.

    ``times`` is how many times the shortest time that is, ``group`` the last group that found out.
    """

    times: int
    until: Instant
    seen_at: Instant
    group: str = ""


class StatusTimes(msgspec.Struct, omit_defaults=True):
    """One line of the status ConfigMap: its value and since when it holds."""

    status: str = ""
    since: Instant | None = None
    """None when nothing of the group had been seen at the time."""


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nodes that were asked for on behalf of pods: used to check whether they helped."""

    group: str
    nodes: int
    time: Instant
    kind: str
    """What the pods have in common: namespace and name of their controller, or of the pod."""
    pods: tuple[tuple[str, str], ...] = ()
    joined: Instant | None = None
    """When all the group's nodes had registered."""


class Useless(msgspec.Struct, frozen=True):
    """A group whose new nodes left pods of one kind pending: not offered to them before ``until``."""

    times: int
    until: Instant


class Degradation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The number of consecutive loops that left pods out for lack of time, and the time of the last one."""

    loops: int = 0
    at: Instant | None = None


class RequestsMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """State of ProvisioningRequests.

    Attributes:
        turn: Whether requests are served before pods, where both wait: they take turns.
        retry: How long a request waits after its last try, by uid, those picked last at the end.
        booked: The node of each booked pod, by ``hint_key``: it is tried first in the next tick.
        written: By uid of a waiting request: the version over which its acceptance was last written, and the time of it.
    """

    turn: bool = False
    retry: dict[str, Duration] = {}
    booked: dict[str, str] = {}
    written: dict[str, tuple[str, Instant]] = {}


class UpcomingNode(msgspec.Struct, frozen=True):
    """One of a group's upcoming nodes, counted from 0; -1 for none of them."""

    group: str
    number: int


class MadeGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group that the loop created: when, for which pods, and from how many candidates."""

    at: Instant
    pods: int
    pod: str
    """One of them, as ``namespace/name``."""
    chosen_by: str
    candidates: int
    labels: dict[str, str] = {}
    """What was added to the provider's own labels, as the pods ask for it."""


class Memory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All state that outlives a tick. Instants are None until the event has happened."""

    started: Instant | None = None
    cleaned: bool = False
    """Whether the taints that an earlier process left were looked at."""
    uncleaned: tuple[tuple[str, str], ...] = ()
    """Those of them (node, key) that could not be taken off, and are tried again."""
    last_scale_up: Instant | None = None
    scale_up_requests: dict[str, ScaleUpRequest] = {}
    unrecovered: tuple[str, ...] | None = None
    """Groups that could not be read yet since requests of an earlier process were looked for; None before that."""
    last_scale_up_of: dict[str, Instant] = {}
    last_failure_of: dict[str, Instant] = {}
    backoff: dict[str, BackoffEntry] = {}
    stock_outs: dict[str, StockOut] = {}
    """By offer: ``<instance type> <zone> <market>``."""
    unregistered_since: dict[str, Instant] = {}
    """By provider id."""
    register_times: dict[str, tuple[TimeTaken, ...]] = {}
    """By group: the last times from the tick that first saw a machine to its registering (``recent_times``)."""
    late: dict[str, dict[str, Instant]] = {}
    """By group: its late machines, and since when each is known to be; with ``--replace-late-nodes``."""
    former_instances: dict[str, str] = {}
    """Provider id -> group, of nodes whose instance is gone from the cloud."""
    seen_errors: dict[str, str] = {}
    """Provider id -> ``class.code`` of creation errors that were counted already."""
    incorrect_sizes: dict[str, IncorrectSize] = {}
    templates: dict[str, SeenTemplate] = {}
    templates_at: Instant | None = None
    """When the last tick looked for good nodes, or was quiet: those of live templates were there then."""
    learned: Learned = Learned()
    learned_changed: bool = False
    """Whether ``learned`` has changed since it was last handed out to be stored."""
    learned_written: Instant | None = None
    joining: dict[str, Joining] = {}
    """By name of node."""
    noticed: dict[str, tuple[str, ...]] = {}
    """By group: what is odd about it and was said."""
    join_times: dict[str, tuple[Duration, ...]] = {}
    """By group: the last times from an increase to its last node's joining."""
    attempts: tuple[Attempt, ...] = ()
    useless: dict[str, Useless] = {}
    """By ``<group> <kind of pods>``."""
    new_pods: dict[str, NewPod] = {}
    """By uid of their controller: what its new pods ask for, where a VPA sets that."""
    missing_since: dict[str, Instant] = {}
    """By workload: since when requested replicas do not exist."""
    increases: tuple[tuple[Instant, int], ...] = ()
    """Nodes asked for within the last hour."""
    planned: dict[str, tuple[tuple[str, ...], ...]] = {}
    """By group: for which pods (by ``hint_key``) each of the nodes was bought that are not there yet."""
    nominated: dict[str, UpcomingNode] = {}
    """By node that pods were nominated to: the upcoming node whose pods these were. Until the node has lost its nomination taint."""
    expected: dict[str, str] = {}
    """By ``hint_key``: the upcoming node on which the last tick placed a pod. Empty where no group has the nomination taint."""
    hints: dict[str, str] = {}
    """The node that each pod without one fitted on in the last tick, by ``hint_key``: it is tried first."""
    rotation: int = 1
    """Where the next search for a node starts; the scheduler's rotating index."""
    health_status: dict[str, StatusTimes] = {}
    scale_up_status: dict[str, StatusTimes] = {}
    scale_down_status: dict[str, StatusTimes] = {}
    """By group id, and "" for the whole cluster."""
    candidates: dict[str, int] = {}
    """By group id: how many of its nodes the last evaluation found unneeded."""
    status_text: str = ""
    """The status document as last written, without the times of probing."""
    status_candidates: tuple[str, ...] = ()
    """The unneeded nodes that it counted."""
    status_written: Instant | None = None
    requests: RequestsMemory = RequestsMemory()
    degradation: Degradation = Degradation()
    buffer_templates: dict[str, str] = {}
    """By PodTemplate of a CapacityBuffer: uid of the pod that it was last copied from, or version of a workload; a PodTemplate's name."""
    unwritten_templates: dict[str, str] = {}
    """Those of them that could not be written in the last tick, with the errors; an empty one where writing was withheld."""
    made_groups: dict[str, MadeGroup] = {}
    """By group id; of groups that exist."""
    empty_since: dict[str, Instant] = {}
    """By group id: since when groups that the loop made have had no nodes."""
    scale_down: ScaleDownMemory = msgspec.field(default_factory=ScaleDownMemory)
    consolidation: ConsolidationMemory = msgspec.field(default_factory=ConsolidationMemory)

    def note_unwritten(self, errors: Mapping[str, str]) -> None:
        """Forget what these PodTemplates were copied from, so that they are copied again; remember why they were not."""
        if errors or self.unwritten_templates:
            held = self.buffer_templates.items()
            self.buffer_templates = {name: source for name, source in held if name not in errors}
            self.unwritten_templates = dict(errors)
