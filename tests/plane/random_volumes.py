"""Volumes of a comparison with kube-scheduler: storage classes, volumes and claims, drawn from a seed.

The plane's controller-manager binds; what an external provisioner would make is made here.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

from tests.objects import samples
from tests.plane.random_pods import NAMESPACES, ZONE, ZONES, Json

from kubetide.cluster import HttpCluster
from kubetide.embedded.controllers import VolumeCache
from kubetide.embedded.controllers.volume_plan import provisioned
from kubetide.objects.kinds import (
    CLAIMS,
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from kubetide.objects.node import Node
from kubetide.ports.errors import AlreadyExists
from kubetide.scheduling.snapshot.volumes import SELECTED_NODE, is_bound
from kubetide.watching import Informer

LATE = {"volumeBindingMode": "WaitForFirstConsumer"}
TWO_ZONES = [{"matchLabelExpressions": [{"key": ZONE, "values": list(ZONES[:2])}]}]
CLASSES = (
    samples.storage_class("late", **LATE),
    samples.storage_class("two-zones", **LATE, allowedTopologies=TWO_ZONES),
    samples.storage_class("now"),
    samples.storage_class("capped", **LATE, provisioner="capped.test"),
    samples.storage_class("local", **LATE, provisioner="kubernetes.io/no-provisioner"),
    samples.storage_class("nobody", provisioner="kubernetes.io/no-provisioner"),
)
DRIVERS = (
    # Not attached: who attaches is asynchronous, and would be counted at other times by both sides.
    samples.csi_driver("csi.test", attachRequired=False),
    samples.csi_driver("capped.test", attachRequired=False, storageCapacity=True),
)
_OWN_CLASSES = (*("late",) * 5, *("two-zones",) * 3, *("capped",) * 3, *("local",) * 5, "nobody", "gone")
_SHARED = 24


def in_zone(zone: str) -> Json:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {"required": {"nodeSelectorTerms": [term]}}


class RandomVolumes:
    """The volumes of a plane, and those that pods get."""

    def __init__(self, cluster: HttpCluster, rng: Random, cache: VolumeCache, nodes: Informer[Node]) -> None:
        self.cluster, self.rng, self.cache, self.nodes = cluster, rng, cache, nodes

    @property
    def claims(self):
        return self.cache.of(CLAIMS).objects

    @property
    def volumes(self):
        return self.cache.of(PERSISTENT_VOLUMES).objects

    async def make(self) -> None:
        """Make classes, drivers, local volumes, limits of nodes, and claims that pods share."""
        for kind, bodies in ((STORAGE_CLASSES, CLASSES), (CSI_DRIVERS, DRIVERS)):
            for body in bodies:
                with suppress(AlreadyExists):
                    await self.cluster.create(kind, body)
        for _, name in sorted(self.nodes.objects):
            if self.rng.random() < 0.6:
                count = {"count": self.rng.choice((0, 1, 2, 3))}
                driver = {"name": "csi.test", "nodeID": name, "allocatable": count}
                await self.cluster.create(CSI_NODES, samples.csi_node(name, drivers=[driver]))
        for zone in ZONES:
            size = self.rng.choice(("2Gi", "6Gi", "20Gi"))
            body = samples.capacity(
                zone, storageClassName="capped", capacity=size, nodeTopology={"matchLabels": {ZONE: zone}}
            )
            with suppress(AlreadyExists):
                placed = {**body, "metadata": {"name": zone}}
                await self.cluster.create(CSI_CAPACITIES, placed, namespace="default")
        for index in range(30):
            await self._local_volume(index)
        for index in range(_SHARED):
            await self._shared_claim(index)

    async def _local_volume(self, index: int) -> None:
        rng = self.rng
        affinity = in_zone(rng.choice(ZONES))
        if rng.random() < 0.5:
            host = {
                "key": "kubernetes.io/hostname",
                "operator": "In",
                "values": [f"n{rng.randrange(100):03}"],
            }
            affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}}
        body = samples.volume(
            f"local-{index}",
            storageClassName="local",
            local={"path": "/disk"},
            csi=None,
            capacity={"storage": rng.choice(("1Gi", "5Gi", "20Gi"))},
            accessModes=rng.choice((["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"])),
            nodeAffinity=affinity,
        )
        await self.cluster.create(PERSISTENT_VOLUMES, body)

    async def _shared_claim(self, index: int) -> None:
        """A claim with a volume of its own, of a zone by affinity or by label, or of everywhere."""
        rng, name = self.rng, f"shared-{index}"
        namespace = rng.choice(tuple(NAMESPACES))
        mode = rng.choice(("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))
        drawn = rng.randrange(4)
        given: Json = {"nodeAffinity": in_zone(rng.choice(ZONES))} if drawn == 0 else {}
        body = samples.volume(
            name,
            storageClassName="",
            accessModes=[mode],
            csi={"driver": rng.choice(("csi.test", "other.test")), "volumeHandle": f"h-{index % 20}"},
            claimRef={"namespace": namespace, "name": name},
            **given,
        )
        if drawn == 1:
            body["metadata"]["labels"] = {ZONE: rng.choice((*ZONES, "z-a__z-b"))}
        await self.cluster.create(PERSISTENT_VOLUMES, body)
        claim = samples.claim(name, storageClassName="", accessModes=[mode], volumeName=name)
        await self.cluster.create(CLAIMS, {**claim, "metadata": {"name": name}}, namespace=namespace)

    def settled(self) -> bool:
        """Whether the shared claims are bound, and the local volumes may be taken."""
        shared = [one for one in self.claims.values() if one.metadata.name.startswith("shared-")]
        free = [one for one in self.volumes.values() if one.metadata.name.startswith("local-")]
        return (
            len(shared) == _SHARED
            and all(is_bound(one) and one.status.phase == "Bound" for one in shared)
            and len(free) == 30
            and all(one.status.phase == "Available" for one in free)
        )

    def draw(self, index: int, namespace: str) -> tuple[list[Json], list[Json]]:
        """Return the volumes of a pod, and the claims that must be there before it."""
        rng = self.rng
        volumes, claims = [], []
        for number in range(rng.choice((1, 1, 2))):
            drawn = rng.random()
            if drawn < 0.45:
                there = [key for key, claim in self.claims.items() if is_bound(claim)]
                shared = sorted(name for space, name in there if space == namespace)
                name = rng.choice(shared) if shared and rng.random() < 0.95 else "missing"
            else:
                name = f"own-{index}-{number}"
                claims.append(
                    samples.claim(
                        name,
                        storageClassName=rng.choice(_OWN_CLASSES),
                        resources={"requests": {"storage": rng.choice(("1Gi", "4Gi", "10Gi"))}},
                        accessModes=[rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany"))],
                    )
                )
            volumes.append({"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}})
        return volumes, claims

    async def add(self, claims: list[Json], namespace: str) -> None:
        for body in claims:
            meta = {"name": body["metadata"]["name"]}
            await self.cluster.create(CLAIMS, {**body, "metadata": meta}, namespace=namespace)

    def are_seen(self, claims: list[Json], namespace: str) -> bool:
        return all((namespace, body["metadata"]["name"]) in self.claims for body in claims)

    def are_bound(self, names: list[tuple[str, str]]) -> bool:
        """Whether the claims of a pod that was bound are bound here too, with volumes that know it."""
        found = [self.claims.get(name) for name in names]
        return all(
            claim is not None
            and is_bound(claim)
            and (volume := self.volumes.get(("", claim.spec.volume_name))) is not None
            and volume.spec.claim_ref is not None
            for claim in found
        )

    async def provision(self) -> None:
        """Make the volumes that somebody waits for, as an external provisioner does."""
        for claim in list(self.claims.values()):
            storage_class = self.cache.of(STORAGE_CLASSES).objects.get(
                ("", claim.spec.storage_class_name or "")
            )
            chosen = (claim.metadata.annotations or {}).get(SELECTED_NODE)
            if storage_class is None or claim.spec.volume_name or chosen is None:
                continue
            if storage_class.provisioner == "kubernetes.io/no-provisioner":
                continue
            labels = self.nodes.objects["", chosen].metadata.labels
            with suppress(AlreadyExists):
                await self.cluster.create(PERSISTENT_VOLUMES, provisioned(claim, storage_class, labels))

    async def clear(self) -> None:
        """Take away all that was made but classes, drivers and capacities."""
        free = {"metadata": {"finalizers": None}}
        for kind in (CLAIMS, PERSISTENT_VOLUMES, CSI_NODES):
            for namespace, name in list(self.cache.of(kind).objects):
                await self.cluster.delete(kind, name, namespace=namespace)
                if kind is not CSI_NODES:
                    with suppress(Exception):
                        await self.cluster.patch(kind, name, free, namespace=namespace)
