"""Which pods a new node of each group would take, for all groups at once.

With hundreds of groups, asking each template about each class is most of a tick. So templates stand in
one snapshot, and a class is compared with all of them by vectors: node objects and amounts. Reasons are
asked for only where a template refuses. What classes mind of other pods is the same for templates that
pass so far and have the same values of the labels that matter and the same DaemonSet pods: one of them is
asked, in the cluster.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from kubetide.nodes.templates import Template
from kubetide.scheduling import PodClass, Snapshot
from kubetide.scheduling.filters.registry import FIRST_FILTERS
from kubetide.scheduling.node_selection import HOSTNAME
from kubetide.scheduling.pod_class import classify_unbound
from kubetide.scheduling.refusal import Refusal
from kubetide.scheduling.template import check_in_cluster

Refusals = list[Refusal | None]
"""By template: why it does not take a class."""


def judge_templates(
    snapshot: Snapshot, templates: Sequence[Template], pod_classes: Iterable[PodClass]
) -> dict[PodClass, Refusals]:
    """Says for each class why a fresh node of each template would not take it, None where it would.

    A class that minds other pods is judged as if the node had joined the cluster. The snapshot is left as
    found.

    Args:
        snapshot: The cluster.
        templates: Each with a node name of its own.
        pod_classes: What is to be placed.
    """
    together = _Together(snapshot, templates)
    found = {pod_class: together.judge(pod_class) for pod_class in dict.fromkeys(pod_classes)}
    together.ask_in_cluster(found)
    return found


class _Together:
    """All templates in one snapshot, and what is still to be asked in the cluster."""

    def __init__(self, snapshot: Snapshot, templates: Sequence[Template]) -> None:
        self._snapshot = snapshot
        self._templates = templates
        self._names = [template.node.metadata.name for template in templates]
        self._daemons: list[Hashable] = []
        self._asked: dict[int, list[tuple[PodClass, list[int]]]] = {}
        # Whether devices can be had is asked in the cluster.
        self._all = Snapshot(replace(snapshot.facts, devices=None))
        for name, template in zip(self._names, templates, strict=True):
            self._all.add_template(template.node, template.pods, name)
            classes = tuple(classify_unbound(pod) for pod in template.pods)
            keeps_away = any(one.anti_affinity for one in classes)
            self._daemons.append((classes, name if keeps_away else ""))

    def judge(self, pod_class: PodClass) -> Refusals:
        """Gives the refusals by node objects and amounts; notes what must be asked in the cluster."""
        minds = self._snapshot.minds_others(pod_class) or self._snapshot.asks_for_devices(pod_class)
        keys = self._snapshot.topology_keys(pod_class)
        if _is_special(pod_class) or keys is None or (not minds and self._all.minds_others(pod_class)):
            if minds:
                for at in range(len(self._templates)):
                    self._ask(at, pod_class, [at])
                return [None] * len(self._templates)
            return [self._by_itself(at, pod_class) for at in range(len(self._templates))]
        passes = self._all.fits_alone(pod_class)
        found: Refusals = [None] * len(self._templates)
        for at in np.flatnonzero(~passes).tolist():
            found[at] = refusal = self._by_itself(at, pod_class)
            if minds and (refusal is None or refusal.plugin not in FIRST_FILTERS):
                self._ask(at, pod_class, [at])
        if minds:
            alike: dict[Hashable, list[int]] = {}
            for at in np.flatnonzero(passes).tolist():
                alike.setdefault((self._daemons[at], self._domains(at, keys)), []).append(at)
            for these in alike.values():
                self._ask(these[0], pod_class, these)
        return found

    def ask_in_cluster(self, found: dict[PodClass, Refusals]) -> None:
        """Fills in what was noted: each template joins the cluster once."""
        for at, asked in self._asked.items():
            template = self._templates[at]
            classes = [pod_class for pod_class, _ in asked]
            refusals = check_in_cluster(self._snapshot, template.node, template.pods, classes)
            for (pod_class, these), refusal in zip(asked, refusals, strict=True):
                for one in these:
                    found[pod_class][one] = refusal

    def _ask(self, at: int, pod_class: PodClass, these: list[int]) -> None:
        self._asked.setdefault(at, []).append((pod_class, these))

    def _by_itself(self, at: int, pod_class: PodClass) -> Refusal | None:
        return self._templates[at].fresh.first_refusal(pod_class, self._names[at])

    def _domains(self, at: int, keys: Sequence[str]) -> Hashable:
        """The values of the labels; every new node has a hostname of its own, which is as good as any other."""
        labels = self._templates[at].node.metadata.labels or {}
        return tuple(key in labels if key == HOSTNAME else labels.get(key) for key in keys)


def _is_special(pod_class: PodClass) -> bool:
    """Whether its verdict on a template may depend on more than that template's labels, taints and amounts."""
    return (
        pod_class.names_nodes
        or pod_class.devices is not None
        or bool(pod_class.claims or pod_class.disks or pod_class.features)
    )
