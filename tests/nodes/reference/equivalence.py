"""Groups of pending pods that are the same to the scheduler, and what became of each group."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.places import Place
from tests.nodes.reference.pod_kinds import MOST_KINDS, controller, is_daemon, like
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.world import Json


@dataclass(eq=False)
class PodGroup:
    """Pods that are alike. `fits` are the node groups that would take them, `errors` why others would not."""

    pods: list[Json]
    fits: list[str] = field(default_factory=list)
    errors: dict[str, list[str]] = field(default_factory=dict)
    schedulable: bool = False

    @property
    def sample(self) -> Json:
        return self.pods[0]


def grouped(pods: list[Json]) -> list[PodGroup]:
    """Group pods of one controller that are alike. Pods of no controller and DaemonSet pods stand alone.

    Of each controller ten groups take further pods; what differs from these is alone, each pod of it.
    """
    groups: list[PodGroup] = []
    open_groups: dict[str, list[PodGroup]] = {}
    for pod in pods:
        owner = controller(pod)
        known = [] if owner is None or is_daemon(pod) else open_groups.setdefault(owner["uid"], [])
        found = next((one for one in known if like(one.sample, pod)), None)
        if found is not None:
            found.pods.append(pod)
            continue
        groups.append(PodGroup([pod]))
        if owner is not None and not is_daemon(pod) and len(known) < MOST_KINDS:
            known.append(groups[-1])
    return groups


def those_that_fit(
    snapshot: Snapshot, groups: list[PodGroup], node_group: str, template: Place
) -> list[PodGroup]:
    """Return the groups whose first pod fits an empty node, and note for each whether it did."""
    snapshot.fork()
    snapshot.add_node(template.copy())
    fitting = []
    for group in groups:
        reasons = snapshot.check(group.sample, template.name)
        if reasons:
            group.errors[node_group] = reasons
            continue
        fitting.append(group)
        group.schedulable = True
        group.fits.append(node_group)
    snapshot.revert()
    return fitting


def reject_all(groups: list[PodGroup], reason: str) -> None:
    """Let no group be schedulable any more; each node group that would have taken it has the reason."""
    for group in groups:
        if group.schedulable:
            group.errors.update({name: [reason] for name in group.fits})
            group.schedulable = False


def reject_failed(groups: list[PodGroup], failed: set[str], reason: str) -> None:
    """Note the reason at the failed node groups; who fits nowhere else is not schedulable any more."""
    for group in groups:
        if not group.schedulable or not group.fits:
            continue
        group.errors.update({name: [reason] for name in group.fits if name in failed})
        if failed.issuperset(group.fits):
            group.schedulable = False
