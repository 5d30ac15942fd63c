"""Instance types of a scenario from its catalogue file."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from kubetide.clouds.catalog import Catalog, CatalogError, read_catalog
from kubetide.simulate.scenarios.spec import InstanceTypeSpec, Scenario
from kubetide.units.quantity import bytes_to_text, milli_to_text


def with_catalog_types(base: Path, scenario: Scenario) -> Scenario:
    """Return the scenario with the catalogue's types that its groups use; its own ``instanceTypes`` win.

    Args:
        base: The folder that the catalogue's path is relative to.
        scenario: What names the catalogue.

    Raises: CatalogError, also for a type of a group whose size the catalogue does not say.
    """
    if not scenario.catalog:
        return scenario
    catalog = read_catalog(base / scenario.catalog)
    used = {group.instance_type for group in scenario.node_groups}
    found = {
        name: _spec(catalog, name) for name in catalog.types if name in used - scenario.instance_types.keys()
    }
    return replace(scenario, instance_types={**found, **scenario.instance_types})


def catalog_types(base: Path, scenario: Scenario) -> dict[str, InstanceTypeSpec]:
    """Return those of the scenario's instance types that say what its catalogue says. Raises CatalogError."""
    plain = replace(scenario, instance_types={})
    there = with_catalog_types(base, plain).instance_types
    return {name: spec for name, spec in there.items() if scenario.instance_types.get(name) == spec}


def _spec(catalog: Catalog, name: str) -> InstanceTypeSpec:
    shape = catalog.shape(name)
    if shape is None or shape.cpu is None or shape.memory is None:
        raise CatalogError(
            f"{catalog.name}: {name}: a scenario needs cpu and memory of the type; fill both columns"
        )
    spec = InstanceTypeSpec(
        cpu=milli_to_text(shape.cpu),
        memory=bytes_to_text(shape.memory),
        price_per_hour=catalog.price(name, "", "on-demand") or 0.0,
        gpu=shape.gpus or 0,
    )
    if shape.pods is not None:
        spec = replace(spec, pods=shape.pods)
    if shape.allocatable_cpu is not None:
        spec = replace(spec, reserved_cpu=milli_to_text(shape.cpu - shape.allocatable_cpu))
    if shape.allocatable_memory is not None:
        spec = replace(spec, reserved_memory=bytes_to_text(shape.memory - shape.allocatable_memory))
    return spec
