"""One pod and one machine: does the pod fit, and if not, why."""

from __future__ import annotations

from typing import Any

import msgspec

from kubetide.api.inputs import InputError, Objects, read_objects
from kubetide.embedded.cloud import CATALOGUE, GroupSpec
from kubetide.embedded.cloud.groups import template_of
from kubetide.objects.base import Json
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import Shortfall, check_template, classify_unbound


class Fit(msgspec.Struct, frozen=True):
    """Whether a pod fits on a new machine.

    Attributes:
        plugin: The plugin of kube-scheduler that refuses first; empty where it fits.
        reasons: Its words.
        shortfalls: Of resources that are short: what was asked and what there is, in milli-CPU, bytes or counts.
    """

    fits: bool
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()

    def __bool__(self) -> bool:
        return self.fits


def fits(pod: Objects, machine: Objects, *, labels: dict[str, str] | None = None) -> Fit:
    """Return whether a pod fits on a new node, by kube-scheduler's filters (v1.36).

    Args:
        pod: A Pod, or a workload whose template is meant; of several objects the first.
        machine: A Node, or the name of an instance type such as ``m5.large``.
        labels: Of the node, beside its own.

    Raises: InputError.
    """
    node = _node(machine)
    node["metadata"]["labels"] = {**(node["metadata"].get("labels") or {}), **(labels or {})}
    refusal = check_template(classify_unbound(_pod(pod)), msgspec.convert(node, Node), ())
    if refusal is None:
        return Fit(fits=True)
    return Fit(fits=False, plugin=refusal.plugin, reasons=refusal.reasons, shortfalls=refusal.numbers)


def _node(machine: Objects) -> Json:
    if isinstance(machine, str) and machine in CATALOGUE:
        made = template_of(GroupSpec(name="new", instance_type=machine, max_size=1), CATALOGUE[machine])
        node: Json = msgspec.to_builtins(made.node)
        return node
    if isinstance(machine, str) and "\n" not in machine and "{" not in machine:
        raise InputError(
            f"{machine} is no instance type of the catalogue; there are {', '.join(sorted(CATALOGUE))}"
        )
    for kind, json in read_objects(machine):
        if kind is NODES:
            return json
    raise InputError("there is no Node among the objects; give one, or the name of an instance type")


def _pod(given: Objects) -> Pod:
    for kind, json in read_objects(given):
        spec: Any = json.get("spec") or {}
        if kind is PODS:
            return msgspec.convert(json, Pod)
        template = spec.get("template") or (spec.get("jobTemplate") or {}).get("spec", {}).get("template")
        if template:
            metadata = {
                **(template.get("metadata") or {}),
                "name": json["metadata"].get("name", ""),
                "namespace": json["metadata"].get("namespace") or "default",
            }
            return msgspec.convert({"metadata": metadata, "spec": template["spec"]}, Pod)
    raise InputError("there is neither a Pod nor a workload with a pod template among the objects; give one")
