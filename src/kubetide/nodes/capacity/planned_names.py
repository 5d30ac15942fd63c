"""Names of pods that exist only in the plan."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubetide.nodes.state import State
from kubetide.objects.pod import Pod

APART: Final = "-requested"
"""Is added to the name of a planned pod while a pod of that name exists."""


def apart(state: State, pod: Pod) -> Pod:
    """Return the pod under a name that no pod has: the snapshot knows pods by their names."""
    name = pod.metadata.name
    while (pod.metadata.namespace, name) in state.pods:
        name += APART
    return pod if name == pod.metadata.name else replace(pod, metadata=replace(pod.metadata, name=name))
