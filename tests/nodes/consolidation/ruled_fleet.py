"""Fleets whose pods have rules: volumes, devices, GPUs, host ports, rules between pods, and owners that keep them.

Each node has a DaemonSet's pod. A pod that is evicted comes again with its rules, on the first node by name that takes it.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace
from tests.nodes import frozen
from tests.nodes.claims import CLASS, claim, slice_of
from tests.nodes.consolidation.fleet import Fleet
from tests.objects import samples

from kubetide.nodes.facts.devices import DeviceChanges
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.facts.volumes import VolumeChanges
from kubetide.nodes.records.delta import Gone
from kubetide.objects.resource import ResourceClaim
from kubetide.objects.storage import PersistentVolume, PersistentVolumeClaim
from kubetide.scheduling import classify_unbound
from kubetide.units.time import format_rfc3339

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
GPU: Final = "nvidia.com/gpu"
BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes"}
KEPT: Final = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
STAYS: Final = ("kept", "bare", "local")
"""Pods that stay: by their annotation, without a controller, with a volume of their node."""
RULES: Final = (
    "plain",
    "apart",  # no two on a node
    "spread",  # over zones
    "zoned",  # by node selector
    "port",  # of the host
    "volume",  # of a zone
    "once",  # a volume for one pod
    "gpu",
    "device",
    "shared",  # one claim for all of a node
    "admin",  # access to a device that others have
    "expendable",
    *STAYS,
)


def ruled_group(name, cpu, price, *, zone="a", gpus=0, devices=0, **fields):
    """A group whose nodes may have GPUs, or devices."""
    amounts = {"status": {"allocatable": {GPU: str(gpus)}, "capacity": {GPU: str(gpus)}}} if gpus else {}
    made = frozen.template(cpu=str(cpu), memory="64Gi", labels={"kind": name, ZONE: zone}, **amounts)
    slices = (slice_of("template", devices),) if devices else ()
    limits = {"maximum": 50, **fields}
    return frozen.group(name, made=replace(made, slices=slices), price_per_hour=price, **limits)


def ruled_pod(name, rule, cpu, *, node, zone):
    """A pod with a rule that is to be put on a node."""
    spec, container, requests, annotations = {}, {}, {"cpu": f"{cpu}m", "memory": "64Mi"}, {}
    same = {"labelSelector": {"matchLabels": {"rule": rule}}}
    match rule:
        case "apart":
            terms = [{**same, "topologyKey": HOST}]
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        case "spread":
            term = {**same, "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [term]
        case "zoned":
            spec["nodeSelector"] = {ZONE: zone}
        case "port":
            container = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
        case "volume" | "once" | "local":
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
        case "gpu":
            requests[GPU] = "1"
        case "device" | "admin" | "shared":
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim_name(name, rule, node)}]
        case "expendable":
            spec["priority"] = -20
        case "kept":
            annotations = KEPT
        case _:
            pass
    whole = {"name": "app", "image": "registry.test/app:1", "resources": {"requests": requests}, **container}
    return frozen.pod(
        name,
        kind="" if rule == "bare" else "ReplicaSet",
        metadata={"labels": {"app": "web", "rule": rule}, "annotations": annotations},
        spec={**spec, "containers": [whole]},
    )


def claim_name(name, rule, node):
    return f"shared-{node}" if rule == "shared" else f"claim-{name}"


def volumes_of(name, rule, *, node, zone):
    """The bound claim of a pod and its volume: of a zone, of a node, or for one pod."""
    key, on = {"volume": (ZONE, zone), "local": (HOST, node)}.get(rule, (HOST, ""))
    mode = "ReadWriteOncePod" if rule == "once" else "ReadWriteOnce"
    body = samples.claim(volumeName=f"v-{name}", accessModes=[mode])
    body["metadata"] = {"name": f"data-{name}", "namespace": "default", "annotations": BOUND}
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [on]}]}
    volume = samples.volume(
        f"v-{name}",
        claimRef={"namespace": "default", "name": f"data-{name}"},
        accessModes=[mode],
        csi={"driver": "csi.test", "volumeHandle": f"h-{name}"},
        **({"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if on else {}),
    )
    return VolumeChanges(
        claims=(msgspec.convert(body, PersistentVolumeClaim),),
        persistent_volumes=(msgspec.convert(volume, PersistentVolume),),
    )


class RuledFleet(Fleet):
    """``rules``: group -> for each node the (rule, milli-CPU) of its pods; a pod that the node does not take is left out."""

    def __init__(self, groups, rules, **settings):
        super().__init__(groups, {name: [()] * len(nodes) for name, nodes in rules.items()}, **settings)
        agent = frozen.daemon_set("agent")
        agent = replace(agent, metadata=replace(agent.metadata, namespace="default"))
        self.gather(daemon_sets=(agent,), devices=DeviceChanges(classes=(CLASS,)))
        for name in list(self.state.nodes):
            self._furnish(name)
        for group, nodes in rules.items():
            for at, pods in enumerate(nodes):
                for number, (rule, cpu) in enumerate(pods):
                    self._start(f"{rule}-{group}-{at}-{number}", rule, cpu, f"{group}-{at}")

    def rule_of(self, pod):
        return (pod.metadata.labels or {}).get("rule", "")

    def waiting(self):
        """The rules of the pods without a node that somebody is to serve."""
        found = {self.rule_of(pod) for pod in self.state.pods.values() if not pod.spec.node_name}
        return found - {"expendable"}

    def minute(self):
        super().minute()
        for pod in [one for one in self.state.pods.values() if not one.spec.node_name]:
            self._schedule(pod)

    # ── nodes ──

    def _furnish(self, name):
        """Give a node the labels, amounts and devices of its group, and a DaemonSet's pod."""
        group, node = self.groups[self.state.group_of(name)], self.state.nodes[name]
        like, slices = group.template.node, group.template.slices or ()
        labels = {**(like.metadata.labels or {}), HOST: name}
        amounts = {"capacity": like.status.capacity, "allocatable": like.status.allocatable}
        metadata = replace(node.metadata, labels=labels)
        agent = frozen.pod(f"agent-{name}", node=name, kind="DaemonSet", of="agent")
        changed = DeviceChanges(slices=tuple(slice_of(name, len(one.spec.devices)) for one in slices))
        node = replace(node, metadata=metadata, status=replace(node.status, **amounts))
        self.gather(nodes=(node,), pods=(agent,), devices=changed)

    def _join(self, action):
        known = set(self.state.nodes)
        super()._join(action)
        for name in sorted(set(self.state.nodes) - known):
            self._furnish(name)

    def _taint(self, action):
        if action.key == TO_BE_DELETED:
            for pod in self.state.pods.values():
                if pod.spec.node_name == action.node:
                    self._release(pod)
            if self.groups[self.state.group_of(action.node)].template.slices:
                gone = Gone(devices=(("resourceslices", "", f"{action.node}-gpu"),))
                self.gather(gone=gone, devices=DeviceChanges())
        super()._taint(action)

    # ── pods ──

    def _start(self, name, rule, cpu, node):
        zone = self.state.nodes[node].metadata.labels[ZONE]
        if rule in {"volume", "once", "local"}:
            self.gather(volumes=volumes_of(name, rule, node=node, zone=zone))
        made = ruled_pod(name, rule, cpu, node=node, zone=zone)
        for one in made.spec.resource_claims or ():
            if ("default", one.resource_claim_name) not in self._claims():
                self._put_claim(claim(one.resource_claim_name), admin=rule == "admin")
        if self.state.snapshot.fits(classify_unbound(made), node):
            self._bind(made, node)

    def _place(self, pod):
        """The controller's new pod: pods of DaemonSets and those without a controller do not come again."""
        owners = pod.metadata.owner_references or ()
        if any(one.kind == "ReplicaSet" for one in owners):
            self.made += 1
            name = f"again-{self.made}"
            created = format_rfc3339(self.now)
            metadata = replace(pod.metadata, name=name, uid=f"uid-{name}", creation_timestamp=created)
            spec = replace(pod.spec, node_name="")
            self._schedule(replace(pod, metadata=metadata, spec=spec, status=frozen.pod(name).status))

    def _schedule(self, pod):
        pod_class, snapshot = classify_unbound(pod), self.state.snapshot
        takes = [one for one in sorted(self.state.nodes) if snapshot.fits(pod_class, one)]
        if takes:
            self._bind(pod, takes[0])
        else:
            self.gather(pods=(pod,))

    def _bind(self, pod, node):
        """Put the pod on the node, and give its claims devices there."""
        for one in pod.spec.resource_claims or ():
            self._allocate(one.resource_claim_name, pod, node)
        status = replace(pod.status, phase="Running", conditions=())
        self.gather(pods=(replace(pod, spec=replace(pod.spec, node_name=node), status=status),))

    # ── claims ──

    def _claims(self):
        return self.state.snapshot.devices.claims

    def _put_claim(self, made, *, admin=False, **status):
        body = msgspec.to_builtins(made)
        body["status"] = status
        if admin:
            body["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
        self.gather(devices=DeviceChanges(claims=(msgspec.convert(body, ResourceClaim),)))

    def _allocate(self, name, pod, node):
        known = self._claims()["default", name]
        status = msgspec.to_builtins(known.status)
        if not status.get("allocation"):
            admin = bool(known.spec.devices.requests[0].exactly.admin_access)
            device = "gpu-0" if admin else self._free_device(node)
            made = claim(name, device=device, on=node, user=pod.metadata.name)
            status = msgspec.to_builtins(made.status)
            status["allocation"]["devices"]["results"][0]["adminAccess"] = admin
        users = [one for one in status["reservedFor"] or () if one["name"] != pod.metadata.name]
        user = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
        self._put_claim(known, **{**status, "reservedFor": [*users, user]})

    def _free_device(self, node):
        given = [one.status.allocation for one in self._claims().values() if one.status.allocation]
        results = [one for each in given for one in each.devices.results if one.pool == node]
        taken = {one.device for one in results if not one.admin_access}
        return next(one for one in ("gpu-0", "gpu-1") if one not in taken)

    def _release(self, pod):
        for one in pod.spec.resource_claims or ():
            known = self._claims()["default", one.resource_claim_name]
            status = msgspec.to_builtins(known.status)
            users = [one for one in status["reservedFor"] or () if one["name"] != pod.metadata.name]
            self._put_claim(known, **({**status, "reservedFor": users} if users else {}))
