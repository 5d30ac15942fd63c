"""How the GCE provider is set up: ``--cloud-config``, ``--nodes``, discovery and its own flags."""

from __future__ import annotations

from kubetide.clouds.common.ini import CloudConfigError, read_ini
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.sizes import parse_node_specs
from kubetide.clouds.gce.discovery import GroupDiscovery, parse_discovery
from kubetide.clouds.gce.references import parse_group_url, region_of
from kubetide.objects.base import ApiStruct
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, seconds

OPTIONS = (
    "scaledownutilizationthreshold",
    "scaledowngpuutilizationthreshold",
    "scaledownunneededtime",
    "scaledownunreadytime",
    "maxnodeprovisiontime",
)
"""The autoscaling options that this provider reads of a template's kube-env."""


_KEYS = ("project_id", "local_zone", "token_url", "token_body")


class GceConfig(ApiStruct):
    """The keys of ``--cloud-config`` that count; empty where it has none.

    ``local_zone`` is a zone, or a region with ``--regional``. A ``token_url`` is an own token service,
    asked with ``token_body``.
    """

    project_id: str = ""
    local_zone: str = ""
    token_url: str = ""
    token_body: str = ""


class GceSettings(ApiStruct):
    """What the provider manages, and how.

    Attributes:
        project: The project of the discovered groups.
        location: A zone, or a region when ``regional``.
        regional: Discovery looks in every zone of the region.
        nodes: Groups named by ``--nodes``; they are never dropped.
        discovery: Which further groups are managed.
        min_refresh_wait: Least time between two lists of one group's instances.
        at_once: How many groups are read at the same time.
        bulk_listing: One list of a zone's instances in place of one a group, where it says as much.
    """

    project: str = ""
    location: str = ""
    regional: bool = False
    nodes: tuple[NodeSpec, ...] = ()
    discovery: tuple[GroupDiscovery, ...] = ()
    min_refresh_wait: Duration = seconds(5)
    at_once: int = 8
    bulk_listing: bool = False


def parse_config(text: str) -> GceConfig:
    """Return the ``[global]`` section of an INI text; other keys are ignored. Raises CloudError."""
    try:
        entries = read_ini(text)
    except CloudConfigError as error:
        raise CloudError(f"cloud-config: {error}") from error
    values = {one.key: one.value or "" for one in entries if one.section == "global" and one.key}
    return GceConfig(**{name: values.get(name.replace("_", "-"), "") for name in _KEYS})


def location_of(zone: str, *, regional: bool) -> str:
    """Return the location that the metadata server's zone stands for. Raises CloudError."""
    return region_of(zone) if regional else zone


def parse_nodes(specs: tuple[str, ...]) -> tuple[NodeSpec, ...]:
    """Return the groups of ``--nodes``; each name must be an instance group's URL. Raises CloudError."""
    return tuple(parse_node(spec) for spec in specs)


def parse_node(text: str) -> NodeSpec:
    """Return the group of one ``--nodes``: ``MIN:MAX:URL``. Raises CloudError."""
    (spec,) = parse_node_specs((text,))
    parse_group_url(spec.name)
    return spec


def parse_discoveries(specs: tuple[str, ...]) -> tuple[GroupDiscovery, ...]:
    """Return what ``--node-group-auto-discovery`` asks for. Raises CloudError."""
    return tuple(parse_discovery(spec) for spec in specs)
