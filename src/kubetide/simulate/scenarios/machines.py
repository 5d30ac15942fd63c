"""Builds machines from a scenario: instance types, node groups, groups that can be created, prices."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from kubetide.embedded.cloud import CATALOGUE, GroupSpec, InstanceType
from kubetide.embedded.cloud.catalogue import GPU_RESOURCE
from kubetide.embedded.draws import Between
from kubetide.objects.node import Taint
from kubetide.simulate.outcome.timeline import GroupPrice
from kubetide.simulate.scenarios.spec import (
    InstanceTypeSpec,
    NodeGroupSpec,
    Scenario,
    ScenarioError,
    parse_range,
)
from kubetide.units.quantity import bytes_to_text, milli, milli_to_text, whole

_UNFIT: Final = re.compile(r"[^a-z0-9-]+")
"""What names of instance types may have and names of nodes may not."""


def catalogue_of(scenario: Scenario) -> dict[str, InstanceType]:
    """Return the shipped instance types, overridden by the scenario's own. Raises ScenarioError."""
    found = dict(CATALOGUE)
    for name, spec in sorted(scenario.instance_types.items()):
        try:
            found[name] = instance_type_of(name, spec)
        except ValueError as error:
            raise ScenarioError(f"instanceTypes.{name}: {error}") from error
    for name in scenario.new_groups.instance_types if scenario.new_groups else ():
        if name not in found:
            raise ScenarioError(f"newGroups.instanceTypes: {no_instance_type(name, scenario.instance_types)}")
    for group in scenario.node_groups:
        if group.instance_type not in found:
            raise ScenarioError(
                f"nodeGroups ({group.name}).instanceType: "
                f"{no_instance_type(group.instance_type, scenario.instance_types)}"
            )
    return found


def no_instance_type(name: str, own: Mapping[str, InstanceTypeSpec]) -> str:
    """Return the warning about a node group of an unknown instance type."""
    near = difflib.get_close_matches(name, [*own, *CATALOGUE], n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"shipped are {', '.join(sorted(CATALOGUE))}"
    return f"`{name}` is neither a shipped instance type nor under instanceTypes; {hint}"


def instance_type_of(name: str, spec: InstanceTypeSpec) -> InstanceType:
    """Return one of the scenario's own types. Raises QuantityError, and ValueError if nothing is left for pods."""
    listed = whole(spec.memory)
    actual = listed if spec.actual_memory is None else whole(spec.actual_memory)
    return InstanceType(
        name=name,
        cpu_milli=milli(str(spec.cpu)),
        memory_bytes=actual,
        price_per_hour=spec.price_per_hour,
        pods=spec.pods,
        gpus=spec.gpu,
        reserved_cpu_milli=milli(spec.reserved_cpu),
        reserved_memory_bytes=whole(spec.reserved_memory),
        catalogue_memory_bytes=None if actual == listed else listed,
    )


def shipped_types() -> dict[str, InstanceTypeSpec]:
    """Return the shipped instance types as a scenario would write them."""
    return {
        name: InstanceTypeSpec(
            cpu=milli_to_text(machine.cpu_milli),
            memory=bytes_to_text(machine.memory_bytes),
            pods=machine.pods,
            gpu=machine.gpus,
            price_per_hour=machine.price_per_hour,
            reserved_cpu=milli_to_text(machine.reserved_cpu_milli),
            reserved_memory=bytes_to_text(machine.reserved_memory_bytes),
        )
        for name, machine in CATALOGUE.items()
    }


def prices_of(scenario: Scenario) -> dict[str, GroupPrice]:
    """Return the price of a node of each group, also of groups that can be created, and its capacity for pods."""
    catalogue = catalogue_of(scenario)
    found = {}
    for group in (*groups_of(scenario), *creatable_of(scenario)):
        machine = catalogue[group.instance_type]
        price = machine.price_per_hour if group.price_per_hour is None else group.price_per_hour
        found[group.name] = GroupPrice(per_hour=price, offers=_offers(machine), min_size=group.min_size)
    return found


def _offers(machine: InstanceType) -> dict[str, float]:
    return {
        "cpu": (machine.cpu_milli - machine.reserved_cpu_milli) / 1000,
        "memory": machine.memory_bytes - machine.reserved_memory_bytes,
        "pods": machine.pods,
        GPU_RESOURCE: machine.gpus,
    }


def with_created(prices: Mapping[str, GroupPrice], groups: Iterable[str]) -> dict[str, GroupPrice]:
    """Return the prices with those of created groups: each is named after the creatable group."""
    found = dict(prices)
    for name in groups:
        known = [one for one in prices if name.startswith(f"{one}-")]
        if name not in found and known:
            found[name] = prices[max(known, key=len)]
    return found


def groups_of(scenario: Scenario) -> tuple[GroupSpec, ...]:
    """Return the node groups."""
    return tuple(_group(spec) for spec in scenario.node_groups)


def created_name(instance_type: str, zone: str) -> str:
    """Return the name of the group that the cloud can create for an instance type in a zone."""
    return f"auto-{_UNFIT.sub('-', instance_type.lower())}-{zone.lower()}"


def creatable_of(scenario: Scenario) -> tuple[GroupSpec, ...]:
    """Return the groups that the cloud can create, named after instance type and zone."""
    spec = scenario.new_groups
    if spec is None:
        return ()
    return tuple(
        GroupSpec(
            name=created_name(kind, zone),
            instance_type=kind,
            max_size=spec.max,
            zones=(zone,),
            boot=between(spec.boot_time),
            ready=between(spec.ready_time),
            shutdown=between(spec.shutdown_time),
        )
        for kind in spec.instance_types
        for zone in spec.zones
    )


def _group(spec: NodeGroupSpec) -> GroupSpec:
    return GroupSpec(
        name=spec.name,
        instance_type=spec.instance_type,
        min_size=spec.min,
        max_size=spec.max,
        initial=spec.initial,
        zones=(spec.zone,),
        labels=dict(spec.labels),
        taints=tuple(Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in spec.taints),
        price_per_hour=spec.price_per_hour,
        boot=between(spec.boot_time),
        ready=between(spec.ready_time),
        shutdown=between(spec.shutdown_time),
        devices=dict(spec.devices),
    )


def between(text: str) -> Between:
    """Return the bounds of a range of durations."""
    found = parse_range(text)
    return Between(found.low, found.high)
