"""The parts that players of the clouds suite share: answers in the form of the cases, and how they are compared.

Errors: where a case has a text, ours must have it in it. Quantities are compared by value, prices
within 1e-9. Changing calls must be the recorded ones of their step; others may be fewer, never more
over the whole story.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from tests.conformance.cases import Case, difference

from kubetide.nodes.scale_up.increase.balancing import are_similar
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.template import Template
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node, NodeSpec, NodeStatus, Taint
from kubetide.objects.pod import Container as PodContainer
from kubetide.objects.pod import Pod, PodSpec, ResourceRequirements
from kubetide.ports.cloud import GroupOptions, Instance, InstanceError
from kubetide.scheduling import fresh_node
from kubetide.units.quantity import Quantity
from kubetide.units.time import format_duration, parse_duration

Answer = dict[str, Any]
_OPERATION = "error while waiting for operation"

_DEFAULTS = {
    "scale_down_utilization_threshold": 0.5,
    "scale_down_gpu_utilization_threshold": 0.5,
    "scale_down_unneeded_time": "10m",
    "scale_down_unready_time": "20m",
    "max_node_provision_time": "15m",
    "max_node_startup_time": "15m",
    "ignore_daemonsets_utilization": False,
    "zero_or_max_node_scaling": False,
}


def taints_of(taints: Iterable[Taint] | None) -> list[str]:
    return sorted(f"{one.key}={one.value}:{one.effect}" for one in taints or ())


def template_of(node: Node) -> Answer:
    labels = {k: v for k, v in (node.metadata.labels or {}).items() if k != "kubernetes.io/hostname"}
    answer = {
        "labels": labels,
        "taints": taints_of(node.spec.taints),
        "capacity": dict(node.status.capacity or {}),
        "allocatable": dict(node.status.allocatable or {}),
    }
    return answer | ({"annotations": node.metadata.annotations} if node.metadata.annotations else {})


def options_of(options: GroupOptions | None) -> Answer:
    options = options or GroupOptions()
    found = {}
    for name, default in _DEFAULTS.items():
        value = getattr(options, name)
        value = default if value is None else value
        found[name] = format_duration(parse_duration(value)) if isinstance(value, str) else value
    return found


def status_of(state: str | None, error: InstanceError | None) -> Answer | None:
    if state is None:
        return None
    if error is None:
        return {"state": state}
    return {
        "state": state,
        "error_class": error.error_class,
        "error_code": error.error_code,
        "error_message": error.error_message,
    }


def instances_of(instances: Iterable[Instance] | None, *, stateless: Container[str] = ()) -> list[Answer]:
    """Return instances in the form of the cases; those in ``stateless`` have no status."""
    found = [
        {
            "id": one.provider_id,
            "status": status_of(None if one.provider_id in stateless else one.state, one.error),
        }
        for one in instances or ()
    ]
    return sorted(found, key=lambda one: str(one["id"]))


def attempt(call: Callable[[], Any], *errors: type[Exception]) -> Any:
    """Return what the call returns, or ``{"error": text}``."""
    try:
        return call()
    except errors as error:
        return {"error": str(error)}


def compare(where: str, expected: Any, found: Any) -> str | None:
    """Return the first difference, with the rules of this module."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            if key.endswith("error") and key in expected:
                inner = _errors(f"{where}.{key}", expected[key], found.get(key))
            elif (
                key in {"capacity", "allocatable", "kube_reserved", "extended_resources"} and key in expected
            ):
                inner = compare(f"{where}.{key}", _by_value(expected[key]), _by_value(found.get(key)))
            else:
                inner = compare(f"{where}.{key}", expected.get(key), found.get(key))
            if inner:
                return inner
        return None
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (left, right) in enumerate(zip(expected, found, strict=True)):
            inner = compare(f"{where}[{index}]", left, right)
            if inner:
                return inner
        return None
    if isinstance(expected, float) and isinstance(found, int | float):
        near = abs(expected - found) <= 1e-9 * max(abs(expected), abs(found))
        return None if near else f"{where}: expected {expected!r}, found {found!r}"
    return difference(where, expected, found)


def _errors(where: str, expected: Any, found: Any) -> str | None:
    if isinstance(expected, dict):  # an error's class and code, not a text
        return compare(where, expected, found)
    if isinstance(expected, str) and expected.startswith(_OPERATION):
        # The script does not say the operation's type, which upstream's text has.
        expected = _OPERATION
    if isinstance(expected, str) and " belong" in expected:
        # An instance of no group or of another one; each provider has its own word for its groups.
        expected = " belong"
    right = found is None if expected is None else bool(found) if expected is True else expected in str(found)
    return None if right else f"{where}: expected {json.dumps(expected)}, found {json.dumps(found)}"


def _by_value(quantities: Any) -> Any:
    if not isinstance(quantities, dict) or "error" in quantities:
        return quantities
    return {name: str(Quantity.parse(size).exact_nano()) for name, size in quantities.items()}


def play_similar(case: Case) -> str | None:
    """Compare two nodes as the balancer of similar groups does."""
    given = case["input"]
    ratios = given["ratios"]
    settings = Settings(
        provider=case["provider"],
        balancing_ignore_label=tuple(given.get("extra_ignored_labels") or ()),
        memory_difference_ratio=ratios["max_capacity_memory"],
        max_allocatable_difference_ratio=ratios["max_allocatable"],
        max_free_difference_ratio=ratios["max_free"],
    )
    found = are_similar(_template("a", given["a"]), _template("b", given["b"]), settings)
    return difference("similar", case["expect"]["similar"], found)


def _template(name: str, given: Mapping[str, Any]) -> Template:
    node = Node(
        metadata=ObjectMeta(name=name, labels=given.get("labels")),
        spec=NodeSpec(),
        status=NodeStatus(capacity=given.get("capacity"), allocatable=given.get("allocatable")),
    )
    pods: tuple[Pod, ...] = ()
    if given.get("pod_requests"):
        container = PodContainer(name="c", resources=ResourceRequirements(requests=given["pod_requests"]))
        pods = (Pod(metadata=ObjectMeta(name="p", namespace="d"), spec=PodSpec(containers=(container,))),)
    return Template(node=node, pods=pods, origin="cloud", source="", fresh=fresh_node(node, pods))


class Calls:
    """The calls of a story, and whether they are the recorded ones."""

    def __init__(self, changes: Callable[[Answer], bool]) -> None:
        self._changes = changes
        self._made: list[Answer] = []
        self._extra: Counter[str] = Counter()

    def note(self, call: Answer) -> None:
        self._made.append(call)

    def step_difference(self, where: str, recorded: Sequence[Answer]) -> str | None:
        """Compare the calls since the last step: changes exactly, others are counted."""
        made, self._made = self._made, []
        difference_ = difference(
            f"{where}.calls",
            sorted(_key(call) for call in recorded if self._changes(call)),
            sorted(_key(call) for call in made if self._changes(call)),
        )
        self._extra.update(_key(call) for call in made)
        self._extra.subtract(_key(call) for call in recorded)
        return difference_

    def rest_difference(self, allowed: int = 0) -> str | None:
        """Return a text where more reads than recorded, except allowed ones, were made over the whole story."""
        more = sum(self._extra.values()) - allowed
        return f"{more} calls more than upstream makes: {self._extra}" if more > 0 else None


def _key(call: Answer) -> str:
    return json.dumps(call, sort_keys=True)
