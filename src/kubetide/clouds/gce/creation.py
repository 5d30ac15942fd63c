"""Managed instance groups that can be created: like a pattern, with another machine type, in its zone.

A group is a pattern when its instance template has the metadata item ``kubetide-create``, whose value names machine
types, separated by spaces: groups have no labels, and keys of metadata no dots and slashes, while values of labels can
hold no list. What was created says so in its description, ``kubetide.dev/created-from=<pattern>``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubetide.clouds.common.creation import (
    CREATED,
    HAS_NO_MAXIMUM,
    Candidate,
    candidate_name,
    copying,
    make_candidate,
    name_is_taken,
    pattern_warnings,
    types_in,
    unlike_architecture,
    unreadable,
)
from kubetide.clouds.gce.api import ComputeApi
from kubetide.clouds.gce.machine_types import MachineType
from kubetide.clouds.gce.managers import Manager
from kubetide.clouds.gce.references import GceRef, TemplateRef, group_id, parse_template_url
from kubetide.clouds.gce.template import InstanceTemplate, TemplateProperties
from kubetide.clouds.gce.templates import Templates, build, options_of
from kubetide.objects.base import Json
from kubetide.ports.cloud import NewGroup, NodeGroup
from kubetide.ports.errors import CloudError

CALLED: Final = "a managed instance group"
ITEM: Final = "kubetide-create"
"""The key of the metadata item that marks a pattern."""

_REGIONAL: Final = "it is regional; mark a group of one zone"
_LONGEST = 54
"""Names of instances have 63 characters: the group's, four letters of theirs, and what a caller appends."""
_MARK: Final = f"{CREATED}="
_GKE_LABELS: Final = ("goog-gke-", "goog-k8s-")
_GROUP_COPIED: Final = (
    "allInstancesConfig",
    "autoHealingPolicies",
    "instanceLifecyclePolicy",
    "listManagedInstancesResults",
    "namedPorts",
    "resourcePolicies",
    "targetPools",
)
_OF_THE_SERVER: Final = {"kind", "fingerprint"}
_OF_THE_OWNER: Final = {"labels", "resourceManagerTags"}
"""Maps whose keys are the owner's to choose, ``kind`` as well."""


def types_to_create(template: InstanceTemplate) -> tuple[str, ...]:
    """Return the machine types that a group of the template is a pattern for, each once."""
    metadata = template.properties.metadata if template.properties else None
    return types_in(metadata.value(ITEM) if metadata else None)


def pattern_of(manager: Manager) -> str | None:
    """Return the name of the pattern that the group was created from; None where this program did not create it."""
    text = manager.description
    return text.removeprefix(_MARK) if text.startswith(_MARK) else None


def obstacle_of(manager: Manager, template: InstanceTemplate, max_size: int) -> str:
    """Return why no group can be created like this one, empty where one can."""
    properties = template.properties or TemplateProperties()
    affinity = properties.reservation_affinity
    found = {
        "GKE manages it; tag a group that you manage yourself": (
            manager.name.startswith("gke-")
            or any(key.startswith(_GKE_LABELS) for key in properties.labels or {})
        ),
        HAS_NO_MAXIMUM: max_size < 1,
        "it keeps the state of its machines": bool((manager.stateful_policy or {}).get("preservedState")),
        "it has several machine types; give it one": bool(
            (manager.instance_flexibility_policy or {}).get("instanceSelections")
        ),
        "its machines have accelerators, which other types may not take": bool(properties.guest_accelerators),
        "its machines have local SSDs, whose number depends on the type": any(
            disk.type == "SCRATCH" for disk in properties.disks or ()
        ),
        "its machines are of one CPU platform, which other types may not have": bool(
            properties.min_cpu_platform
        ),
        "its machines come from a reservation, which is for their type": (
            affinity is not None and affinity.consume_reservation_type == "SPECIFIC_RESERVATION"
        ),
        "its machines are on sole-tenant nodes, which take one family of types": bool(
            (properties.scheduling or {}).get("nodeAffinities")
        ),
        "its machines use a part of their type's CPUs, and others have other numbers": bool(
            (properties.advanced_machine_features or {}).get("visibleCoreCount")
        ),
    }
    return next((text for text, holds in found.items() if holds), "")


def ref_of(pattern: GceRef, machine_type: str) -> GceRef:
    """Return the group that would be created."""
    return pattern._replace(
        name=candidate_name(pattern.name, machine_type, pattern.location, longest=_LONGEST)
    )


def would_be(template: InstanceTemplate, ref: GceRef, machine_type: str) -> InstanceTemplate:
    """Return the template of the group that would be created, as far as a node depends on it."""
    properties = template.properties or TemplateProperties()
    return replace(template, name=ref.name, properties=replace(properties, machine_type=machine_type))


async def create(api: ComputeApi, pattern: GceRef, ref: GceRef, new: NewGroup) -> None:
    """Create a template and a group of it; what is left of one that could not be made is deleted. Raises CloudError.

    Args:
        api: The calls.
        pattern: The group that it is to be like.
        ref: The new group; its template has the same name.
        new: What is asked for.
    """
    group = await api.manager_model(pattern)
    with copying(f"the group {pattern}"):
        used = parse_template_url(group["instanceTemplate"])
    template = await api.template_model(pattern.project, pattern.region, used)
    own = TemplateRef(ref.name, used.is_regional)
    with copying(f"the instance template {used.name}"):
        body = _template_body(template, ref.name, new.instance_type, pattern.name)
    await _insert_template(api, ref, own, body)
    try:
        await api.insert_group(ref, _group_body(group, ref.name, api.template_path(ref, own), pattern.name))
    except CloudError as error:
        with suppress(CloudError):
            await api.delete_template(ref, own)
        if error.error_code == "alreadyExists":
            raise name_is_taken(new.id, CALLED, error.error_code) from error
        raise


async def _insert_template(api: ComputeApi, ref: GceRef, own: TemplateRef, body: Json) -> None:
    try:
        await api.insert_template(ref, own, body)
    except CloudError as error:
        if error.error_code != "alreadyExists":
            raise
        # One that an earlier process left behind; Compute Engine refuses to delete one that is in use.
        found = await api.template_model(ref.project, ref.region, own)
        if not (found.get("description") or "").startswith(_MARK):
            raise
        await api.delete_template(ref, own)
        await api.insert_template(ref, own, body)


async def delete(api: ComputeApi, ref: GceRef, template_url: str) -> None:
    """Delete a group that was created and the template that was created for it. Raises CloudError."""
    await api.delete_group(ref)
    template = parse_template_url(template_url)
    if template.name == ref.name:
        with suppress(CloudError):  # the group is gone; the next one of this name replaces what is left
            await api.delete_template(ref, template)


def _template_body(template: Json, name: str, machine_type: str, pattern: str) -> Json:
    properties: Json = _sendable(template["properties"])
    properties["machineType"] = machine_type
    items = (properties.get("metadata") or {}).get("items") or ()
    properties["metadata"] = {"items": [one for one in items if one["key"] != ITEM]}
    for interface in properties.get("networkInterfaces") or ():
        interface.pop("name", None)
    return {"name": name, "description": f"{_MARK}{pattern}", "properties": properties}


def _group_body(group: Json, name: str, template: str, pattern: str) -> Json:
    return {
        **{key: _sendable(group[key]) for key in _GROUP_COPIED if group.get(key)},
        "name": name,
        "baseInstanceName": name,
        "description": f"{_MARK}{pattern}",
        "instanceTemplate": template,
        "targetSize": 0,
    }


def _sendable(value: Any) -> Any:
    """Return a part of the API's object without what only the server sets."""
    if isinstance(value, dict):
        return {
            key: one if key in _OF_THE_OWNER else _sendable(one)
            for key, one in value.items()
            if key not in _OF_THE_SERVER
        }
    return [_sendable(one) for one in value] if isinstance(value, list) else value


class Pattern(NamedTuple):
    """The groups that could be created like one, and its warnings; a group that is no pattern has neither."""

    candidates: tuple[Candidate, ...] = ()
    warnings: tuple[str, ...] = ()


class Patterns:
    """What groups that others may be like offer and lack; each candidate is built once.

    Args:
        templates: The groups' templates, and machine types.
    """

    def __init__(self, templates: Templates) -> None:
        self._templates = templates
        self._unknown: dict[tuple[GceRef, str], InstanceTemplate] = {}
        self._built: dict[tuple[GceRef, str], tuple[InstanceTemplate, MachineType, Candidate | None]] = {}

    async def read(self, ref: GceRef, manager: Manager, max_size: int) -> Pattern:
        """Return what groups could be created like this one, and what is wrong with it as a pattern. Raises CloudError."""
        template = await self._templates.template(ref, manager.instance_template)
        asked = types_to_create(template)
        if not asked:
            return Pattern()
        mark = f"metadata item {ITEM}"
        obstacle = _REGIONAL if ref.is_regional else obstacle_of(manager, template, max_size)
        if obstacle:
            return Pattern((), tuple(pattern_warnings(mark, asked, obstacle, ())))
        machines, unfit = await self._machines(ref, template, asked)
        usable = [one for name, one in machines.items() if name not in unfit]
        found = tuple(self._candidate(ref, template, machine, max_size) for machine in usable)
        return Pattern(
            tuple(one for one in found if one is not None),
            tuple(pattern_warnings(mark, asked, "", machines, unfit)),
        )

    async def _machines(
        self, ref: GceRef, template: InstanceTemplate, asked: Sequence[str]
    ) -> tuple[dict[str, MachineType], dict[str, str]]:
        """Return the types that there are, and why some are of no use; one that there is not is asked for once."""
        assert template.properties is not None, "it names types"
        own = await self._templates.machine(ref.project, ref.location, template.properties.machine_type)
        machines: dict[str, MachineType] = {}
        unfit: dict[str, str] = {}
        for name in asked:
            if self._unknown.get((ref, name)) is template:
                continue
            try:
                machine = machines[name] = await self._templates.machine(ref.project, ref.location, name)
            except CloudError as error:
                if error.error_code in {"", "notFound", "404"}:
                    self._unknown[ref, name] = template
                else:
                    unfit[name] = f"it {unreadable(error)}"
                continue
            reason = unlike_architecture(own.architecture, machine.architecture)
            if machine.accelerators or reason:
                unfit[name] = reason or "it has GPUs, which kube-env does not say"
        return machines, unfit

    def _candidate(
        self, pattern: GceRef, template: InstanceTemplate, machine: MachineType, max_size: int
    ) -> Candidate | None:
        key = pattern, machine.name
        known = self._built.get(key)
        if known is None or known[0] is not template or known[1] != machine:
            known = self._built[key] = template, machine, _candidate(pattern, template, machine, max_size)
        return known[2]


def _candidate(
    pattern: GceRef, template: InstanceTemplate, machine: MachineType, max_size: int
) -> Candidate | None:
    ref = ref_of(pattern, machine.name)
    try:
        built = build(would_be(template, ref, machine.name), machine, ref, (ref.location,))
        options, _ = options_of(template)
    except CloudError:
        return None
    return make_candidate(
        group_id(pattern),
        NodeGroup(
            template=built.shown,
            options=options,
            offerings=built.offerings,
            price_per_hour=built.offerings[0].price_per_hour,
        ),
        group_id=group_id(ref),
        max_size=max_size,
        instance_type=machine.name,
        zone=pattern.location,
    )
