"""``least-waste``: the group whose new nodes would leave the smallest share of cpu and memory idle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.nodes.expander.base import Context, Option
from kubetide.objects.pod import Pod
from kubetide.scheduling import classify
from kubetide.units.quantity import milli, whole


def least_waste(options: Sequence[Option], context: Context) -> list[Option]:
    """Keep the options with the least waste.

    Source: Cluster Autoscaler's waste expander: the sum of the idle shares of cpu and memory, out of
    capacity (not allocatable), ties by exact equality of floats.
    """
    del context
    # By identity: options are for the same pods, mostly.
    pods = {id(pod): pod for option in options for pod in option.pods}
    asked = {name: _asked(pod) for name, pod in pods.items()}
    scored = [(_waste(option, asked), option) for option in options]
    least = min(waste for waste, _ in scored)
    return [option for waste, option in scored if waste == least]


def _waste(option: Option, asked: Mapping[int, tuple[int, int]]) -> float:
    """Take cpu and memory that pods ask for, by their identity."""
    amounts = [asked[id(pod)] for pod in option.pods]
    cpu = sum(one for one, _ in amounts)
    memory = sum(one for _, one in amounts)
    capacity = option.template.node.status.capacity or {}
    available_cpu = milli(capacity.get("cpu", 0)) * option.nodes
    available_memory = whole(capacity.get("memory", 0)) * option.nodes
    if not available_cpu or not available_memory:
        return float("inf")
    wasted_cpu = float(available_cpu - cpu) / float(available_cpu)
    wasted_memory = float(available_memory - memory) / float(available_memory)
    return wasted_cpu + wasted_memory


def _asked(pod: Pod) -> tuple[int, int]:
    requests = classify(pod).requests
    return requests.get("cpu", 0), requests.get("memory", 0)
