"""The parts that modules of the clouds suite share: groups as SCHEMA.md shows them, and how they are compared."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import difference

from kubetide.clouds.common.template import HOSTNAME
from kubetide.objects.base import Quantities
from kubetide.objects.node import Taint
from kubetide.ports.cloud import GroupOptions, Instance, NodeGroup, NodeTemplate
from kubetide.units.quantity import Quantity
from kubetide.units.time import format_duration, parse_duration

DEFAULT_OPTIONS: dict[str, Any] = {
    "scale_down_utilization_threshold": 0.5,
    "scale_down_gpu_utilization_threshold": 0.5,
    "scale_down_unneeded_time": "10m0s",
    "scale_down_unready_time": "20m0s",
    "max_node_provision_time": "15m0s",
    "max_node_startup_time": "15m0s",
    "ignore_daemonsets_utilization": False,
    "zero_or_max_node_scaling": False,
}
"""What the recordings' flags say."""


def options_in_force(options: GroupOptions | None) -> dict[str, Any]:
    """Return every option: the group's own, else the flag's."""
    found = dict(DEFAULT_OPTIONS)
    for name in found:
        own = getattr(options, name) if options else None
        if own is not None:
            found[name] = format_duration(parse_duration(own)) if isinstance(own, str) else own
    return found


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl prints it: ``key=value:Effect``."""
    return f"{taint.key}={taint.value}:{taint.effect}"


def template_of(template: NodeTemplate) -> dict[str, Any]:
    node = template.node
    labels = {key: value for key, value in (node.metadata.labels or {}).items() if key != HOSTNAME}
    shown = {
        "labels": labels,
        "taints": sorted(taint_text(taint) for taint in node.spec.taints or ()),
        "capacity": quantities(node.status.capacity),
        "allocatable": quantities(node.status.allocatable),
    }
    if node.metadata.annotations:
        shown["annotations"] = node.metadata.annotations
    return shown


def quantities(held: Quantities | dict[str, Any] | None) -> dict[str, str]:
    """Return quantities as exact numbers, so that two texts of one amount are the same."""
    return {name: str(Quantity.parse(value).exact_nano()) for name, value in (held or {}).items()}


def recorded_template(template: dict[str, Any]) -> dict[str, Any]:
    return template | {name: quantities(template[name]) for name in ("capacity", "allocatable")}


def instance_of(instance: Instance) -> dict[str, Any]:
    """Return an instance as it is recorded; one that runs has no status there."""
    if instance.error is None:
        state = None if instance.state == "Running" else {"state": instance.state}
        return {"id": instance.provider_id, "status": state}
    error = {
        "error_class": instance.error.error_class,
        "error_code": instance.error.error_code,
        "error_message": instance.error.error_message,
    }
    return {"id": instance.provider_id, "status": {"state": instance.state, **error}}


def group_difference(where: str, expected: dict[str, Any], found: NodeGroup) -> str | None:
    """Compare one group of a ``groups`` step with ours."""
    shown: dict[str, Any] = {
        "id": found.id,
        "min": found.min_size,
        "max": found.max_size,
        "target": found.target_size,
        "options": options_in_force(found.options),
        "instances": sorted(map(instance_of, found.instances or ()), key=lambda one: one["id"]),
    }
    compared = {key: value for key, value in expected.items() if key not in {"template", "template_error"}}
    if "template" in expected and found.template is not None:
        compared["template"] = recorded_template(expected["template"])
        shown["template"] = template_of(found.template)
    elif "template" in expected or found.template is not None:
        compared["template"] = "a template" if "template" in expected else expected.get("template_error")
        shown["template"] = found.template_error or "a template"
    elif isinstance(expected.get("template_error"), str):
        # As with other errors ours may say more than upstream's text.
        text = compared["template_error"] = expected["template_error"]
        shown["template_error"] = text if text in found.template_error else found.template_error
    return difference(where, compared, shown)


def error_difference(where: str, expected: dict[str, Any], error: str) -> str | None:
    """Compare an error: it must contain upstream's text, and may name the object too."""
    text = expected.get("error")
    if text is None:
        return f"{where}: expected no error, found {error}"
    if isinstance(text, str) and text not in error:
        return f"{where}: expected the error {text!r}, found {error!r}"
    return None
