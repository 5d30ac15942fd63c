"""Plays the cases of Azure: parsing, templates, statuses and whole stories against a scripted API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from tests.conformance.cases import Case
from tests.conformance.clouds_playing import (
    Answer,
    attempt,
    compare,
    options_of,
    play_similar,
    status_of,
    taints_of,
    template_of,
)

from kubetide.clouds.azure import tags as tag_reading
from kubetide.clouds.azure.config import read_config
from kubetide.clouds.azure.discovery import matching_bounds, parse_discovery
from kubetide.clouds.azure.model import Machine, ScaleSet
from kubetide.clouds.azure.references import last_segment, normalized, provider_id
from kubetide.clouds.azure.settings import OPTIONS
from kubetide.clouds.azure.skus import find_type, has_nvidia_label, is_fpga, may_force
from kubetide.clouds.azure.status import StatusRules, VmStatus, machine_status, provisioned
from kubetide.clouds.azure.template import build_node, zones_of
from kubetide.clouds.common.options import read_options
from kubetide.ports.errors import CloudError

_A_ZONE = "ONE-OF-THE-ZONES"
_NOT_JSON = "failed to unmarshal config body: "


def first_difference(case: Case) -> str | None:
    if case["kind"] == "similar":
        return play_similar(case)
    if case["kind"] == "world":
        from tests.conformance.clouds_azure_world import play

        return play(case)
    expected = case["expect"]
    found = attempt(lambda: _PLAYERS[case["kind"]](case["input"]), CloudError)
    if expected.get("panic"):
        return None
    if case["kind"] == "config" and "error" in expected and found.get("subscriptionId") == "":
        return None  # ours asks the metadata service when it connects, and fails then
    if str(expected.get("error")).startswith(_NOT_JSON):  # what the parser says is its own
        expected = expected | {"error": _NOT_JSON}
    return compare("expect", expected, found)


def any_zone(template: Answer, zones: tuple[str, ...]) -> Answer:
    """Put the word of the cases in place of the zone of a set with several."""
    if len(zones) < 2:
        return template
    labels = {key: _A_ZONE if value in zones else value for key, value in template["labels"].items()}
    return template | {"labels": labels}


def _discovery(given: Answer) -> Answer:
    found = parse_discovery(given["spec"])
    return {"selector": dict(found.selector), "min": found.min_size, "max": found.max_size}


def _match(given: Answer) -> Answer:
    found = matching_bounds([parse_discovery(spec) for spec in given["specs"] or ()], given["tags"] or {})
    if found is None:
        return {"match": False}
    least, most = (-1 if one is None else one for one in found)
    return {"match": True, "min": least, "max": most}


def _resource_id(given: Answer) -> Answer:
    answer: Answer = {}
    for name, read in (("normalized", normalized), ("last_segment", last_segment)):
        found: Any = attempt(lambda read=read: read(given["id"]), CloudError)  # type: ignore[misc]
        answer |= {f"{name}_error": found["error"]} if isinstance(found, dict) else {name: found}
    return answer


def _tags(given: Answer) -> Answer:
    tags = given["tags"] or {}
    raw = tag_reading.raw_options(tags)
    return {
        "labels": tag_reading.labels(tags),
        "taints": taints_of(tag_reading.taints(tags)),
        "resources": {name: str(size) for name, size in tag_reading.resources(tags).items()},
        "raw_options": raw,
        "options": options_of(read_options(raw, OPTIONS)[0]),
    }


def _instance_type(given: Answer) -> Answer:
    sku = given["sku"]
    answer = {"fpga": is_fpga(sku), "nvidia_label": has_nvidia_label(sku)}
    try:
        found = find_type(sku)
    except CloudError as error:
        return answer | {"error": str(error)}
    return answer | {
        "arch": found.arch,
        "gpu": found.gpu,
        "memory_mib": found.memory_mib,
        "type": found.name,
        "vcpu": found.vcpu,
    }


def _template(given: Answer) -> Answer:
    scale_set = msgspec.convert(given["vmss"], ScaleSet)
    node = build_node(scale_set, predict_labels=given["enableLabelPredictionsOnTemplate"])
    return any_zone(template_of(node), zones_of(scale_set))


def _rules(given: Answer) -> StatusRules:
    return StatusRules(
        fast_delete=bool(given.get("enableFastDeleteOnFailedProvisioning")),
        detailed_cse=bool(given.get("enableDetailedCSEMessage")),
    )


def _vm_status(given: Answer) -> Answer:
    machine = msgspec.convert(given["vm"], Machine)
    known = given.get("known_before_as")
    found = machine_status(machine, _rules(given), VmStatus(known) if known else None)
    return {"id": provider_id(machine.id), "status": status_of(found.state, found.error)}


def _flex_status(given: Answer) -> Answer:
    found = provisioned(given.get("provisioningState") or "", given.get("power_state") or "", _rules(given))
    return {"status": status_of(found.state, found.error)}


def _force_delete(given: Answer) -> Answer:
    force = may_force(
        given["sku"], enabled=given["enableForceDelete"], dedicated_host=given["dedicated_host"]
    )
    return {"force": force}


def _config(given: Answer) -> Answer:
    found = read_config(given["file"], given["env"])
    return {name: value for name, value in found.values.items() if name in _SHOWN}


_SHOWN = frozenset(
    {
        "aadClientId",
        "aadClientSecret",
        "cloudProviderBackoff",
        "cloudProviderBackoffDuration",
        "cloudProviderBackoffExponent",
        "cloudProviderBackoffJitter",
        "cloudProviderBackoffRetries",
        "cloudProviderRateLimit",
        "cloudProviderRateLimitQPS",
        "enableDynamicInstanceList",
        "enableForceDelete",
        "enableLabelPredictionsOnTemplate",
        "enableVmssFlexNodes",
        "getVmssSizeRefreshPeriod",
        "location",
        "maxDeploymentsCount",
        "resourceGroup",
        "strictCacheUpdates",
        "subscriptionId",
        "tenantId",
        "useFederatedWorkloadIdentityExtension",
        "useManagedIdentityExtension",
        "vmType",
        "vmssCacheTTLInSeconds",
        "vmssVirtualMachinesCacheTTLInSeconds",
        "vmssVmsCacheJitter",
    }
)

_PLAYERS: dict[str, Callable[[Answer], Answer]] = {
    "discovery": _discovery,
    "discovery_match": _match,
    "resource_id": _resource_id,
    "tags": _tags,
    "taint_list": lambda given: {"taints": taints_of(tag_reading.parse_taints(given["text"]))},
    "instance_type": _instance_type,
    "force_delete": _force_delete,
    "template": _template,
    "vm_status": _vm_status,
    "flex_vm_status": _flex_status,
    "config": _config,
}
