"""What the node loop remembers between ticks; part of the state, and of every full record."""

from __future__ import annotations

import msgspec

from kubetide.nodes.scale_down.memory import ScaleDownMemory
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.units.time import Duration, Instant


class ScaleUpRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nodes that were asked for and have not all joined yet."""

    increase: int
    time: Instant
    expected_add_time: Instant


class BackoffEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group that failed: not to be asked before ``until``."""

    duration: Duration
    until: Instant
    last_failure: Instant
    error_class: str = "Other"
    error_code: str = ""
    error_message: str = ""


class IncorrectSize(msgspec.Struct, frozen=True):
    """A group whose number of nodes differs from its target, and since when by this very difference."""

    current: int
    expected: int
    first_observed: Instant


class SeenTemplate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the nodes of a group have really looked like.

    ``node`` is the newest good node, sanitised, with the least allocatable and capacity seen of each
    resource since its instance type was first seen; ``pods`` are its DaemonSet and mirror pods.
    """

    node: Node
    pods: tuple[Pod, ...] = ()
    from_node: str
    seen_at: Instant


class StatusTimes(msgspec.Struct, omit_defaults=True):
    """One line of the status ConfigMap: its word and since when it has been so."""

    status: str = ""
    since: Instant = Instant(0)


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """An increase made for pods: used to see whether it helped them."""

    group: str
    nodes: int
    time: Instant
    pods: tuple[tuple[str, str], ...] = ()


class Memory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All that outlives a tick. Instants are None until the thing has happened."""

    started: Instant | None = None
    last_scale_up: Instant | None = None
    scale_up_requests: dict[str, ScaleUpRequest] = {}
    last_scale_up_of: dict[str, Instant] = {}
    last_failure_of: dict[str, Instant] = {}
    backoff: dict[str, BackoffEntry] = {}
    unregistered_since: dict[str, Instant] = {}
    """By provider id."""
    former_instances: dict[str, str] = {}
    """Provider id -> group, of nodes whose instance is gone from the cloud."""
    seen_errors: dict[str, str] = {}
    """Provider id -> ``class.code`` of creation errors that were counted already."""
    incorrect_sizes: dict[str, IncorrectSize] = {}
    templates: dict[str, SeenTemplate] = {}
    longest_join: dict[str, Duration] = {}
    """By group: the longest time from an increase to its last node's joining."""
    attempts: tuple[Attempt, ...] = ()
    useless: dict[str, int] = {}
    """``group/class`` -> increases in a row that joined and left the pods of this class pending."""
    useless_until: dict[str, Instant] = {}
    """``group/class`` -> until when the group is not offered for the class."""
    increases: tuple[tuple[Instant, int], ...] = ()
    """Nodes asked for within the last hour."""
    rotation: int = 0
    """Where the next search for room starts; the scheduler's rotating index."""
    health_status: dict[str, StatusTimes] = {}
    scale_up_status: dict[str, StatusTimes] = {}
    scale_down_status: dict[str, StatusTimes] = {}
    """By group id, and "" for the whole cluster."""
    scale_down: ScaleDownMemory = msgspec.field(default_factory=ScaleDownMemory)
