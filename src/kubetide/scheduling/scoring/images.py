"""ImageLocality: prefers nodes that have the pod's images, weighted by size and spread."""

from __future__ import annotations

import numpy as np

from kubetide.objects.pod import Pod
from kubetide.scheduling.scoring.base import MOST, Incoming, Scored
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.vectors import Int64Vector

_LEAST_BYTES = 23 << 20
_MOST_BYTES = 1000 << 20
"""Of each container; with v1.37, of each image volume too."""


def image_names(pod: Pod) -> tuple[str, ...]:
    """Return the images of a pod's init containers, containers and volumes, with ``:latest`` where no tag is set."""
    spec = pod.spec
    names = [one.image for one in (*(spec.init_containers or ()), *(spec.containers or ()))]
    names += [one.image.reference for one in spec.volumes or () if one.image is not None]
    return tuple(name if name.rfind(":") > name.rfind("/") else f"{name}:latest" for name in names)


class ImageLocality:
    """Source: kube-scheduler v1.36 and v1.37 ImageLocality."""

    name = "ImageLocality"

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:
        return bool(cluster.images and pod.images)

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        if not self.differs(pod, cluster):
            return Scored.as_they_are(np.zeros(len(feasible), np.int64))
        names = [cluster.node_names[row] for row in feasible.tolist()]
        total = np.zeros(len(feasible), np.int64)
        share = len(cluster.node_names)
        for image in pod.images:
            weights = cluster.images.weights(image, names, share)
            if weights is not None:
                total += weights
        most = _MOST_BYTES * pod.containers
        if most <= _LEAST_BYTES:
            return Scored.as_they_are(np.zeros(len(feasible), np.int64))
        scores: Int64Vector = MOST * (np.clip(total, _LEAST_BYTES, most) - _LEAST_BYTES)
        return Scored.as_they_are(scores // (most - _LEAST_BYTES))
