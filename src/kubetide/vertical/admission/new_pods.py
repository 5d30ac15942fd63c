"""What the new pods of each workload will ask for, before there are any: for the node loop of the same process.

A pod that is moved comes back as a new one. Who has seen none yet counts what the old one asks for, gives its node away,
and buys another for the pod that comes back larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubetide.objects.base import Quantities
from kubetide.objects.limit_range import LimitRange
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Pod, PodTemplate
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.quantity import QuantityError
from kubetide.vertical.admission.pods import new_containers
from kubetide.vertical.admission.state import ControllerTemplate, State
from kubetide.vertical.resources.boost import BoostError
from kubetide.vertical.resources.capping import running_containers

Requests = dict[str, Quantities]
"""By container."""


class _Known(NamedTuple):
    """Requests, and what they were worked out from."""

    template: PodTemplate
    vpa: VerticalPodAutoscaler
    ranges: tuple[LimitRange, ...]
    requests: Requests


class NewPods:
    """The requests of new pods by uid of their controller; of the controllers that have changed they are worked out anew."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[str, _Known] = {}
        self.requests: Mapping[str, Requests] = {}
        """Of the controllers of which a VPA sets any; the same mapping while nothing changes."""

    def update(self) -> None:
        """Bring ``requests`` up to date."""
        state, known, before = self._state, {}, self._known
        namespaces = state.vpas.namespaces
        for (_, namespace, _), template in state.templates.items():
            if namespace not in namespaces:
                continue
            found = self._of_controller(namespace, template, before.get(template.owner.uid))
            if found is not None:
                known[template.owner.uid] = found
        self._known = known
        requests = {uid: one.requests for uid, one in sorted(known.items()) if one.requests}
        if requests != self.requests:
            self.requests = requests

    def _of_controller(
        self, namespace: str, made: ControllerTemplate, before: _Known | None
    ) -> _Known | None:
        state, template = self._state, made.template
        meta = ObjectMeta(
            name=f"{made.owner.name}-",
            namespace=namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=(made.owner,),
        )
        vpa = state.vpas.of_pod(meta, state.workloads).vpa
        if vpa is None:
            return None
        ranges = state.limit_ranges.get(namespace, ())
        if before is not None and (before.template, before.vpa, before.ranges) == (template, vpa, ranges):
            return before
        return _Known(template, vpa, ranges, _requests(state, Pod(metadata=meta, spec=template.spec), vpa))


def _requests(state: State, pod: Pod, vpa: VerticalPodAutoscaler) -> Requests:
    """Return what the pod is given; nothing where it would go in as it is, as its VPA cannot be followed."""
    try:
        running = running_containers(pod)
        containers = list(new_containers(running, vpa, state.bounds(pod.metadata.namespace), state.settings))
    except (QuantityError, BoostError):
        return {}
    return {
        one.name: {name: str(amount) for name, amount in sorted(one.resources.requests.items())}
        for one in containers
        if one.resources.requests
    }
