"""What new nodes of groups look like: their instance templates and machine types, read when they change."""

from __future__ import annotations

from typing import NamedTuple

from kubetide.clouds.common.options import ReadOptions, read_options
from kubetide.clouds.common.template import INSTANCE_TYPE, kube_proxy
from kubetide.clouds.gce import kube_env
from kubetide.clouds.gce.api import ComputeApi
from kubetide.clouds.gce.machine_types import MachineType, is_custom, parse_custom
from kubetide.clouds.gce.prices import node_price
from kubetide.clouds.gce.references import GceRef, parse_template_url
from kubetide.clouds.gce.settings import OPTIONS
from kubetide.clouds.gce.template import InstanceTemplate, build_node, environment
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import GroupOptions, NodeTemplate, Offering, market_of
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, hours

_MACHINE_TYPES_FOR = hours(1)


class Built(NamedTuple):
    """What was built of a template on a machine type: a node in the first of the zones, and an offer of each."""

    template: InstanceTemplate
    machine: MachineType
    zones: tuple[str, ...]
    shown: NodeTemplate
    offerings: tuple[Offering, ...]


class Templates:
    """Templates of groups, and what they make; a machine type is read anew each hour.

    Args:
        api: The project's Compute Engine.
        clock: Time.
    """

    def __init__(self, api: ComputeApi, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._templates: dict[GceRef, tuple[str, InstanceTemplate]] = {}
        self._machines: dict[tuple[str, str], tuple[Duration, MachineType]] = {}
        self._built: dict[GceRef, Built] = {}
        self._options: dict[GceRef, tuple[InstanceTemplate, ReadOptions]] = {}

    def forget(self, ref: GceRef) -> None:
        """Forget a group that is gone."""
        self._templates.pop(ref, None)
        self._built.pop(ref, None)
        self._options.pop(ref, None)

    async def template(self, ref: GceRef, url: str) -> InstanceTemplate:
        """Return the group's template, which the URL names. Raises CloudError."""
        known = self._templates.get(ref)
        if known is None or known[0] != url:
            template = await self._api.template(ref.project, ref.region, parse_template_url(url))
            known = self._templates[ref] = (url, template)
        return known[1]

    async def built(self, ref: GceRef, url: str, zones: tuple[str, ...]) -> Built:
        """Return what the group's template makes in these zones; built anew only when something changed. Raises CloudError."""
        template = await self.template(ref, url)
        if template.properties is None:
            raise CloudError(f"instance template {template.name} has no properties")
        machine = await self.machine(ref.project, zones[0], template.properties.machine_type)
        built = self._built.get(ref)
        if built is None or built.template is not template or built[1:3] != (machine, zones):
            built = self._built[ref] = build(template, machine, ref, zones)
        return built

    async def machine(self, project: str, zone: str, name: str) -> MachineType:
        """Return a machine type of a zone. Raises CloudError."""
        if is_custom(name):
            return parse_custom(name)
        now = self._clock.monotonic()
        known = self._machines.get((zone, name))
        if known is None or now - known[0] >= _MACHINE_TYPES_FOR:
            known = (now, await self._api.machine_type(project, zone, name))
            self._machines[zone, name] = known
        return known[1]

    async def options(self, ref: GceRef, url: str) -> ReadOptions:
        """Return the options in the group's template. Raises CloudError."""
        template = await self.template(ref, url)
        known = self._options.get(ref)
        if known is None or known[0] is not template:
            known = self._options[ref] = (template, options_of(template))
        return known[1]

    def last_options(self, ref: GceRef) -> GroupOptions | None:
        """Return the options that could be read last."""
        known = self._options.get(ref)
        return None if known is None else known[1].options


def options_of(template: InstanceTemplate) -> ReadOptions:
    """Return the options in a template's kube-env, with what of that is passed over. Raises CloudError."""
    env = environment(template).env
    read = read_options(kube_env.autoscaling_options(env), OPTIONS)
    return read._replace(warnings=(*kube_env.problems(env), *read.warnings))


def build(template: InstanceTemplate, machine: MachineType, ref: GceRef, zones: tuple[str, ...]) -> Built:
    """Return what a template makes on that machine type as a node of the group in these zones. Raises CloudError."""
    node = build_node(template, machine, zones[0], ref.name)
    shown = NodeTemplate(
        node=node, pods=(kube_proxy(ref.name),), source=f"instance template {template.name} of {ref}"
    )
    return Built(template, machine, zones, shown, tuple(_offering(node, zone) for zone in zones))


def _offering(node: Node, zone: str) -> Offering:
    labels = node.metadata.labels or {}
    price = node_price(labels, node.metadata.annotations or {}, node.status.capacity or {}, hours(1))
    return Offering(
        instance_type=labels.get(INSTANCE_TYPE, ""),
        zone=zone,
        market=market_of(labels),
        price_per_hour=price,
    )
