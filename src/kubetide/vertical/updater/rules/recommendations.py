"""What one VPA recommends for the containers of its pods."""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.objects.meta import Key, key_of
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.quantity import QuantityError
from kubetide.vertical.resources.capping import Capped, running_containers
from kubetide.vertical.resources.pod_resources import ContainerResources, recommended_resources
from kubetide.vertical.updater.rules.groups import Say
from kubetide.vertical.updater.rules.priority import capped_for
from kubetide.vertical.updater.state import State


class Recommendations:
    """Recommendations by pod, capped by the VPA's policy and the namespace's LimitRanges; each is worked out once."""

    def __init__(self, vpa: VerticalPodAutoscaler, state: State, say: Say) -> None:
        self._vpa, self._state, self._say = vpa, state, say
        self._capped: dict[Key, Mapping[str, Capped] | None] = {}

    def targets(self, pod: Pod) -> Mapping[str, Capped] | None:
        """Return the capped recommendations of the pod's containers, None without any; what cannot be read is reported."""
        key = key_of(pod)
        if key not in self._capped:
            self._capped[key] = self._cap(pod)
        return self._capped[key]

    def resources(self, pod: Pod) -> dict[str, ContainerResources]:
        """Return the requests and limits to give each container, in order. Raises: QuantityError."""
        running = running_containers(pod)
        resources = recommended_resources(running, self._vpa, self._state.bounds(pod.metadata.namespace))
        return {container.name: one for container, one in zip(running, resources, strict=True)}

    def _cap(self, pod: Pod) -> Mapping[str, Capped] | None:
        try:
            return capped_for(pod, self._vpa, self._state.bounds(pod.metadata.namespace))
        except QuantityError as error:
            self._say("BadRecommendation", key_of(pod), str(error))
            return None
