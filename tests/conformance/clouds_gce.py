"""Plays the cases of GCE: parsing, templates, prices and whole stories against a scripted API."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from tests.conformance.cases import Case
from tests.conformance.clouds_playing import (
    Answer,
    attempt,
    compare,
    instances_of,
    options_of,
    play_similar,
    taints_of,
    template_of,
)

from kubetide.clouds.common.options import read_options
from kubetide.clouds.gce import kube_env, reserved
from kubetide.clouds.gce.discovery import parse_discovery
from kubetide.clouds.gce.instances import (
    ListedInstance,
    ManagedInstance,
    classify,
    listed_instance,
    managed_instances,
)
from kubetide.clouds.gce.machine_types import MachineType, family_of, is_custom, parse_custom
from kubetide.clouds.gce.prices import node_price, pod_prices
from kubetide.clouds.gce.references import (
    ROOT,
    GceRef,
    group_id,
    parse_group_url,
    parse_instance_url,
    parse_provider_id,
    parse_template_url,
    provider_id,
)
from kubetide.clouds.gce.settings import OPTIONS
from kubetide.clouds.gce.template import InstanceTemplate, build_node
from kubetide.nodes.expander.price import pod_price
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import InstanceError
from kubetide.ports.errors import CloudError
from kubetide.scheduling import classify as class_of
from kubetide.units.time import seconds

_REGIONAL_GROUP = re.compile(r"https://.*projects/[^/]*/regions/[^/]*/instanceGroups/[^/]*")
REGIONAL_GROUPS = "regional groups: upstream refuses them, and ours takes the URL of one as a group"


def first_difference(case: Case) -> str | None:
    if regional := [url for url in _group_urls(case) if _REGIONAL_GROUP.fullmatch(url)]:
        ids = [attempt(lambda url=url: group_id(parse_group_url(url)), CloudError) for url in regional]
        expected = [ROOT + url[url.rindex("/projects/") :] for url in regional]
        return compare(REGIONAL_GROUPS, {"ids": expected}, {"ids": ids})
    if case["kind"] == "similar":
        return play_similar(case)
    if case["kind"] == "world":
        from tests.conformance.clouds_gce_world import play

        return play(case)
    expected = case["expect"]
    found = attempt(lambda: _PLAYERS[case["kind"]](case["input"]), CloudError)
    if expected.get("panic"):
        return None if "error" in found else f"expected a refusal, found {found}"
    if expected.get("error") is True and "error" in found:
        return None
    if (
        case["kind"] == "template"
        and expected.get("error") == "kube-env"
        and "kube-env" in found.get("error", "")
    ):
        return None
    return compare("expect", expected, found)


def _group_urls(case: Case) -> list[str]:
    """Return the URLs of groups that a case names."""
    if case["kind"] == "mig_url":
        return [case["input"]["url"]]
    specs = (case["input"].get("nodes") or ()) if case["kind"] == "world" else ()
    return [spec.partition(":")[2].partition(":")[2] for spec in specs]


def _discovery(given: Answer) -> Answer:
    found = parse_discovery(given["spec"])
    return {"name_regexp": found.name_regexp, "min": found.min_size, "max": found.max_size}


def _parts(ref: GceRef) -> Answer:
    return {"project": ref.project, "zone": ref.location, "name": ref.name}


def _mig_url(given: Answer) -> Answer:
    ref = parse_group_url(given["url"])
    return _parts(ref) | {
        "id": group_id(ref),
        "id_with_domain_https://x/v1": group_id(ref, root="https://x/v1"),
    }


def _template_url(given: Answer) -> Answer:
    found = parse_template_url(given["url"])
    return {"name": found.name, "regional": found.is_regional}


def _machine_type(given: Answer) -> Answer:
    name = given["name"]
    answer: Answer = {"custom": is_custom(name)}
    family = attempt(lambda: family_of(name), CloudError)
    answer |= {"family_error": family["error"]} if isinstance(family, dict) else {"family": family}
    found = attempt(lambda: parse_custom(name), CloudError)
    if isinstance(found, dict):
        return answer | {"type_error": found["error"]}
    return answer | {"cpu": found.cpu, "memory_bytes": found.memory_bytes}


def _reserved(given: Answer) -> Answer:
    distribution, arch = given["os_distribution"], given["arch"]
    return {
        "kernel_reserved": reserved.kernel_memory(
            given["physical_memory"], os=given["os"], distribution=distribution, arch=arch
        ),
        "os_reserved_ephemeral_storage": reserved.boot_disk_bytes(
            given["disk_bytes"], distribution=distribution, arch=arch
        ),
        "local_ssd_overhead": reserved.local_ssd_bytes(given["local_ssd_count"], distribution=distribution),
    }


def _sizes(found: Mapping[str, Any]) -> Answer:
    return {name: size if name == "error" else str(size) for name, size in found.items()}


def _kube_env(given: Answer) -> Answer:
    env = kube_env.parse_kube_env(given["text"])

    def part(read: Callable[[Mapping[str, str]], Any]) -> Any:
        return attempt(lambda: read(env), CloudError)

    raw = part(kube_env.autoscaling_options)
    taints = part(kube_env.taints)
    evicted = kube_env.eviction(env)
    answer = {
        "arch": part(kube_env.architecture),
        "boot_disk_is_not_ephemeral_storage": not kube_env.is_boot_disk_for_pods(env),
        "ephemeral_storage_local_ssd_count": kube_env.local_ssds_for_pods(env),
        "eviction": {
            "ephemeral_storage_ratio": evicted.storage_ratio,
            "memory_bytes": evicted.memory_bytes,
        },
        "extended_resources": _sizes(part(kube_env.extended_resources)),
        "kube_reserved_text": part(kube_env.kube_reserved_text),
        "labels": part(kube_env.labels),
        "os": kube_env.operating_system(env),
        "os_distribution": kube_env.distribution(env),
        "raw_options": raw,
        "taints": taints if isinstance(taints, dict) else taints_of(taints),
    }
    text = answer["kube_reserved_text"]
    if isinstance(text, str):
        answer["kube_reserved"] = _sizes(attempt(lambda: kube_env.kube_reserved(text), CloudError))
    if "error" not in raw:
        answer["options"] = options_of(read_options(raw, OPTIONS)[0])
    return answer


def _template(given: Answer) -> Answer:
    template = msgspec.convert(given["template"], InstanceTemplate)
    machine = MachineType(cpu=given["cpu"], memory_bytes=given["memory"])
    return template_of(build_node(template, machine, given["zone"]))


def _managed(given: Answer) -> Answer:
    listed = msgspec.convert(given["managedInstances"], tuple[ManagedInstance, ...])
    return {"instances": instances_of(managed_instances(listed))}


def _error_info(given: Answer) -> Answer:
    previous = given.get("previous")
    found = classify(
        given["code"],
        given["message"],
        given["instance_status"],
        InstanceError(error_class=previous["error_class"], error_code=previous["error_code"])
        if previous
        else None,
    )
    if found is None:
        return {"error": None}
    return {"error": {"error_class": found.error_class, "error_code": found.error_code}}


def _listed(given: Answer) -> Answer:
    instance, group = listed_instance(msgspec.convert(given["instance"], ListedInstance))
    return instances_of([instance])[0] | {"group": str(group)}


def _node_price(given: Answer) -> Answer:
    labels, annotations = given.get("labels") or {}, given.get("annotations") or {}
    return {"price": node_price(labels, annotations, given["capacity"], seconds(given["duration_s"]))}


def _pod_price(given: Answer) -> Answer:
    spec = {
        "containers": [{"resources": {"requests": one}} for one in given.get("containers") or ()],
        "initContainers": [{"resources": {"requests": one}} for one in given.get("init_containers") or ()],
    }
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod)
    hours = math.ceil(given["duration_s"] / 60) / 60
    return {"price": pod_price(class_of(pod).requests, pod_prices()) * hours}


_PLAYERS: dict[str, Callable[[Answer], Answer]] = {
    "discovery": _discovery,
    "mig_url": _mig_url,
    "instance_url": lambda given: {"provider_id": provider_id(parse_instance_url(given["url"]))},
    "provider_id": lambda given: _parts(parse_provider_id(given["id"])),
    "template_url": _template_url,
    "machine_type": _machine_type,
    "reserved": _reserved,
    "kube_env": _kube_env,
    "template": _template,
    "managed_instances": _managed,
    "error_info": _error_info,
    "listed_instance": _listed,
    "node_price": _node_price,
    "pod_price": _pod_price,
}
