"""Nodes before evictions: an option beyond upstream (``provision_before_eviction``).

A pod that is evicted to get more comes back larger. Where no node has the capacity for that, it waits until one boots,
or for ever. So its replacement is announced first; the node loop says whether a node has the capacity for it, or buys
one, and a later loop evicts the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubetide.objects.base import Quantities
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod
from kubetide.plan.board import Replacement
from kubetide.units.quantity import QuantityError
from kubetide.vertical.resources.amounts import Amounts
from kubetide.vertical.resources.capping import running_containers
from kubetide.vertical.updater.rules.recommendations import Recommendations
from kubetide.vertical.updater.state import State

NOT_LOOKED = "the node loop has not looked for it yet"


def replacement_of(pod: Pod, recommendations: Recommendations) -> Replacement | None:
    """Return the pod that takes the place of a running one, None where it asks for no more than that does.

    What cannot be read says nothing of a replacement.
    """
    if pod.status.phase == "Pending":
        return None
    try:
        resources = recommendations.resources(pod)
        running = running_containers(pod)
    except QuantityError:
        return None
    if not any(_is_more(resources[one.name].requests, one.requests) for one in running):
        return None
    requests: dict[str, Quantities] = {
        name: {resource: str(amount) for resource, amount in sorted(one.requests.items())}
        for name, one in resources.items()
        if one.requests
    }
    return Replacement(key_of(pod), pod.metadata.uid, requests)


def with_capacity_first(pods: Iterable[Pod], state: State) -> Iterable[Pod]:
    """Return the pods in their order, but first those for whose replacements there is capacity, and last those without.

    Else a more urgent pod could take the budget of one whose node is there, and one for which there never is a node
    that of all others.
    """
    waits = state.replacement_waits
    if waits is None:
        return pods
    answer = {"": 0, None: 1}
    return sorted(pods, key=lambda pod: answer.get(waits.get(pod.metadata.uid), 2))


def announced(found: Sequence[Replacement], state: State, *, is_whole: bool) -> tuple[Replacement, ...]:
    """Return what is to be announced after a loop, and remember it.

    Args:
        found: The replacements that the loop has come to.
        is_whole: Whether it came to all VPAs; if not, what earlier loops have announced still holds.
    """
    memory = state.memory
    if is_whole:
        memory.replacements = tuple(found)
    else:
        new = {one.uid for one in found}
        earlier = (one for one in memory.replacements if one.uid not in new and _is_there(one, state))
        memory.replacements = (*found, *earlier)
    return memory.replacements


def _is_there(one: Replacement, state: State) -> bool:
    pod = state.pods.get(one.pod)
    return pod is not None and pod.metadata.uid == one.uid


def _is_more(desired: Amounts, present: Amounts) -> bool:
    return any(name not in present or amount > present[name] for name, amount in desired.items())
