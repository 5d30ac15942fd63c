"""Which nodes have which container images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubetide.objects.node import ContainerImage, Node
from kubetide.units.vectors import Int64Vector


class _Image:
    __slots__ = ("nodes", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes: dict[str, None] = {}


class ImageStates:
    """Size and nodes of each image, by image name.

    The size of a name is that of the first node that reported it, for all nodes, until none has it any more.

    Source: kube-scheduler v1.36 scheduler cache.
    """

    def __init__(self) -> None:
        self._images: dict[str, _Image] = {}
        self._of_node: dict[str, tuple[ContainerImage, ...]] = {}

    def __len__(self) -> int:
        return len(self._images)

    def put(self, node: Node) -> None:
        """Store the images that a node reports now."""
        name, images = node.metadata.name, node.status.images or ()
        if self._of_node.get(name, ()) == images:
            return
        self.remove(name)
        self._of_node[name] = images
        for one in images:
            for image in one.names or ():
                state = self._images.get(image)
                if state is None:
                    state = self._images[image] = _Image(one.size_bytes)
                state.nodes[name] = None

    def remove(self, name: str) -> None:
        """Forget the images of a node."""
        for one in self._of_node.pop(name, ()):
            for image in one.names or ():
                state = self._images.get(image)
                if state is not None:
                    state.nodes.pop(name, None)
                    if not state.nodes:
                        del self._images[image]

    def weights(self, image: str, names: Sequence[str], nodes: int) -> Int64Vector | None:
        """Return per node of ``names`` the image's size times the share of all nodes that have it; None for all 0."""
        state = self._images.get(image)
        if state is None:
            return None
        scaled = int(float(state.size) * (len(state.nodes) / nodes))
        return np.array([scaled if name in state.nodes else 0 for name in names], np.int64)
