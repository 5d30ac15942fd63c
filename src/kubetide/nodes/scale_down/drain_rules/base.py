"""The interface of a drain rule: a question about one pod of a node to remove.

Rules are asked in the order of the registry and the first answer wins. A rule is a pure function of
the pod and the context; a new rule is one function and one line in ``registry.RULES``, or a plug-in of another
package (``named``). What rules say
that read no budgets is cached for all pods with the same namespace, labels, annotations, owners, volumes,
restart policy and phase (``scale_down.facts``): one that reads more of a pod needs it there too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from kubetide.nodes.scale_down.unneeded.pdbs import Allowances
from kubetide.nodes.settings import Settings
from kubetide.objects.batch import Job
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import DaemonSet, ReplicaSet, ReplicationController
from kubetide.units.time import Instant

BlockReason = Literal[
    "ControllerNotFound",
    "MinReplicasReached",
    "NotReplicated",
    "LocalStorageRequested",
    "NotSafeToEvictAnnotation",
    "UnmovableKubeSystemPod",
    "NotEnoughPdb",
    "UnexpectedError",
]


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happens to the pod.

    ``skip``: it does not count, nobody moves it. ``drain``: it may be moved. ``wait``: the node may be
    marked unneeded, but goes only when the pod has ended. ``block``: the node stays.
    """

    outcome: Literal["skip", "drain", "wait", "block"]
    reason: BlockReason | None = None
    detail: str = ""


SKIP = Answer("skip")
DRAIN = Answer("drain")
WAIT = Answer("wait")


def block(reason: BlockReason, detail: str) -> Answer:
    """Return the answer that the pod blocks the removal; the detail is one sentence with what was seen."""
    return Answer("block", reason, detail)


Owner = ReplicaSet | ReplicationController | DaemonSet | StatefulSet | Job


class DrainContext(msgspec.Struct, frozen=True):
    """The facts that rules may use besides the pod.

    ``owners`` holds the objects of each kind of controller that the loop watches; a kind that is not a
    key is not watched, and its objects are taken to exist. ``rules`` are all that are asked, in order.
    """

    now: Instant
    settings: Settings
    allowances: Allowances
    owners: Mapping[str, Mapping[Key, Owner]]
    rules: tuple[Rule, ...]


Check = Callable[[Pod, DrainContext], Answer | None]
ChangeTime = Callable[[Pod, DrainContext], Instant | None]


class Rule(msgspec.Struct, frozen=True):
    """One rule.

    Attributes:
        name: For people and explanations.
        check: Gives an answer, or None when the rule has nothing to say about the pod.
        uses_allowance: Whether it reads ``context.allowances.left``, which changes within one tick.
        uses_owners: Whether it reads ``context.owners``; then the order of candidates is found without it.
        changes_at: When the answer may change by the passing of time alone; None for never.
    """

    name: str
    check: Check
    uses_allowance: bool = False
    uses_owners: bool = False
    changes_at: ChangeTime | None = None
