"""What a new node of each group would look like, kept from loop to loop."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from tests.nodes.reference.node_affinity import admits
from tests.nodes.reference.node_marks import is_ready, ready_since
from tests.nodes.reference.places import Place
from tests.nodes.reference.pod_kinds import controller, is_daemon, is_mirror, is_terminating
from tests.nodes.reference.seen_nodes import is_startup_taint
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.tolerations import tolerates_all
from tests.nodes.reference.world import Flags, Group, Json, World

from kubetide.units.time import minutes

HOSTNAME = "kubernetes.io/hostname"
TEMPLATE_LABEL = "cluster-autoscaler.kubernetes.io/template-node"
TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
OWN_TAINTS = (TO_BE_DELETED, "DeletionCandidateOfClusterAutoscaler")
CONDITION_TAINTS = (
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
)
STATUS_PREFIX = "status-taint.cluster-autoscaler.kubernetes.io/"
DEPRECATED_LABELS = {
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "node.kubernetes.io/instance-type": "beta.kubernetes.io/instance-type",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
}


@dataclass
class Templates:
    """Upstream's provider of template nodes. `seen` are templates from live nodes of former loops, by group.

    Each template that is made has a name of its own, so hints to upcoming nodes hold from loop to loop only where
    the template is an old one.
    """

    seen: dict[str, Place] = field(default_factory=dict)
    made: int = 0

    def process(self, world: World, snapshot: Snapshot, nodes: list[Json], now: int) -> dict[str, Place]:
        """Return the template of each group that has one.

        `nodes` are all Nodes, ready or not, in order of name; their pods are those of the snapshot. A good node comes
        first, then the last one that was good, then the cloud's template; a broken node only if there is none of these.
        """
        made: dict[str, Place] = {}
        for node in nodes:
            group = world.group_of_node(node)
            if group is None or group.id in made or not is_good_example(node, now):
                continue
            made[group.id] = self._from_example(world, snapshot, node, group)
            self.seen[group.id] = _copied(made[group.id])
        for name, group in sorted(world.groups.items()):
            if name in made:
                continue
            if name in self.seen:
                made[name] = _copied(self.seen[name])
            elif group.template is not None:
                made[name] = self._from_cloud(world, group)
        self.seen = {name: place for name, place in self.seen.items() if name in world.groups}
        for node in nodes:
            group = world.group_of_node(node)
            if group is not None and group.id not in made:
                made[group.id] = self._from_example(world, snapshot, node, group)
        return made

    def _from_example(self, world: World, snapshot: Snapshot, node: Json, group: Group) -> Place:
        place = snapshot.get(node["metadata"]["name"])
        assert place is not None
        return _template(world, place, group, self._suffix(), world.flags.on("force-ds"))

    def _from_cloud(self, world: World, group: Group) -> Place:
        """The cloud's own template gets every DaemonSet that would run there, and the old names of its labels."""
        assert group.template is not None
        example = Place(group.template, list(group.template_pods))
        made = _template(world, example, group, self._suffix(), force=True)
        labels = made.node["metadata"]["labels"]
        labels.update({old: labels[new] for new, old in DEPRECATED_LABELS.items() if new in labels})
        return made

    def _suffix(self) -> str:
        self.made += 1
        return str(self.made)


def is_good_example(node: Json, now: int) -> bool:
    """Return whether the node is ready for more than a minute, not cordoned and not about to be deleted."""
    spec = node.get("spec") or {}
    taints = {one["key"] for one in spec.get("taints") or ()}
    if spec.get("unschedulable") or TO_BE_DELETED in taints:
        return False
    return is_ready(node) and ready_since(node) + minutes(1) < now


# ── from an example to a template ──


def _template(world: World, example: Place, group: Group, suffix: str, force: bool) -> Place:
    made = fresh_copy(example, suffix, base=f"template-node-for-{group.id}")
    spec = made.node.setdefault("spec", {})
    spec["taints"] = [one for one in spec.get("taints") or () if _stays(one, world.flags)]
    if world.flags.on("scale-from-unschedulable"):
        spec.pop("unschedulable", None)
    there = [one for one in made.pods if not is_terminating(one)]
    running = {owner["uid"] for owner in map(controller, there) if owner and owner["kind"] == "DaemonSet"}
    made.pods = [one for one in there if is_mirror(one) or is_daemon(one)]
    for daemon_set in world.listed("DaemonSet"):
        if daemon_set["metadata"]["uid"] in running or not _runs_on(daemon_set, made.node):
            continue
        pod = _daemon_pod(daemon_set, made)
        if force or _makes_way(pod):
            made.pods.append(pod)
    made.node["metadata"]["labels"][TEMPLATE_LABEL] = "true"
    return made


def _stays(taint: Json, flags: Flags) -> bool:
    """Return whether a new node has the taint too; those that tell of a passing state it has not."""
    key = taint["key"]
    if key in OWN_TAINTS or key in CONDITION_TAINTS:
        return False
    of_status = key in flags.names("status-taint") or key.startswith(STATUS_PREFIX)
    return not of_status and not is_startup_taint(key, flags)


def _runs_on(daemon_set: Json, node: Json) -> bool:
    """Return whether the DaemonSet controller would start a pod there: node name, selector and taints; no resources."""
    spec = daemon_set["spec"]["template"]["spec"]
    if spec.get("nodeName") and spec["nodeName"] != node["metadata"]["name"]:
        return False
    if not admits(spec, node):
        return False
    return tolerates_all({"spec": spec}, node)


def _daemon_pod(daemon_set: Json, place: Place) -> Json:
    template, meta = daemon_set["spec"]["template"], daemon_set["metadata"]
    own = {**(template.get("metadata") or {}), "namespace": meta.get("namespace", "")}
    own["name"] = f"{meta['name']}-pod-1"
    own["uid"] = f"{meta['uid']}-{place.name}"
    own["ownerReferences"] = [
        {"kind": "DaemonSet", "name": meta["name"], "uid": meta["uid"], "controller": True}
    ]
    return {"metadata": own, "spec": {**deepcopy(template["spec"]), "nodeName": place.name}, "status": {}}


def _makes_way(pod: Json) -> bool:
    """Return whether the pod is critical to its node and may push others out: such pods run there in any case."""
    policy = pod["spec"].get("preemptionPolicy") or "PreemptLowerPriority"
    return pod["spec"].get("priorityClassName") == "system-node-critical" and policy == "PreemptLowerPriority"


# ── copies ──


def fresh_copy(template: Place, suffix: str, base: str | None = None) -> Place:
    """Return a node that does not exist yet, made after the template; names of node and pods end in the suffix."""
    node = deepcopy(template.node)
    name = f"{base or template.name}-{suffix}"
    node["metadata"]["name"] = name
    node["metadata"]["uid"] = f"node-{name}"
    node["metadata"]["labels"] = {**(node["metadata"].get("labels") or {}), HOSTNAME: name}
    made = Place(node)
    for pod in template.pods:
        copy = deepcopy(pod)
        copy["metadata"]["name"] = f"{pod['metadata']['name']}-{suffix}"
        copy["metadata"]["uid"] = f"{pod['metadata'].get('uid', pod['metadata']['name'])}-{suffix}"
        copy["spec"]["nodeName"] = name
        made.pods.append(copy)
    return made


def _copied(place: Place) -> Place:
    return Place(deepcopy(place.node), deepcopy(place.pods))
