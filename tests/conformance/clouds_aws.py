"""The clouds suite, provider ``aws``: parsing, templates, and stories of refreshes and changes.

Of a story all changes must be upstream's, call by call; what is only read may be read less often. Where ours
differs on purpose is in ``clouds_aws_rules``: such a step is compared with what the rule expects, and a story whose
cloud is another one from there on ends with it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

import msgspec
from tests.conformance.cases import Case, difference
from tests.conformance.clouds_aws_rules import expected_template, is_bad_group
from tests.conformance.clouds_aws_world import PretendedAws
from tests.conformance.clouds_similar import similar_difference
from tests.conformance.clouds_views import (
    error_difference,
    group_difference,
    options_in_force,
    quantities,
    taint_text,
)

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.discovery import DiscoveryError, joined, parse_discovery
from kubetide.clouds.aws.ids import instance_name, is_placeholder, provider_id
from kubetide.clouds.aws.instance_types import from_api
from kubetide.clouds.aws.tags import OPTION_NAMES, read_tags
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.node_spec import NodeSpecError, parse_node_spec
from kubetide.clouds.common.options import read_options
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, Instant, after, parse_rfc3339, seconds

_ENDED = "the story ends"
_UNCOUNTED = {"DescribeInstanceTypes", "DescribeAutoScalingGroups"}


def first_difference(case: Case) -> str | None:
    kind, given, expected = case["kind"], case["input"], case["expect"]
    if kind == "similar":
        return similar_difference(case, "aws")
    if kind in {"template", "discovery_world", "sizes"}:
        return asyncio.run(_Story(given, expected).play())
    answer = _answer(kind, given)
    if expected.get("panic"):
        return None  # upstream crashes, ours has an answer or a refusal
    if "error" in answer:
        # What a discovery flag lacks is said in our own words.
        required = {"error": True} if kind == "discovery" and "error" in expected else expected
        return error_difference(kind, required, answer["error"])
    if kind == "tags":
        expected = expected | {"resources": quantities(expected["resources"])}
    return difference(kind, expected, answer)


def _answer(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        match kind:
            case "nodes_spec":
                spec = parse_node_spec(given["spec"], scale_to_zero=given["scale_to_zero"])
                return {"name": spec.name, "min": spec.min_size, "max": spec.max_size}
            case "discovery":
                return {"tags": parse_discovery(given["spec"])}
            case "provider_id":
                return {"name": instance_name(given["id"])}
            case "tags":
                return _tags(given)
            case "instance_type":
                found = from_api(given["info"])
                return {
                    "type": found.name,
                    "vcpu": found.vcpu,
                    "memory_mib": found.memory_mib,
                    "gpu": found.gpus,
                    "arch": found.arch,
                }
    except (NodeSpecError, DiscoveryError, CloudError) as error:
        return {"error": str(error)}
    raise ValueError(f"unknown kind {kind}")


def _tags(given: dict[str, Any]) -> dict[str, Any]:
    read = read_tags((tag["Key"], tag.get("Value") or "") for tag in given["tags"])
    return {
        "labels": read.labels,
        "taints": sorted(map(taint_text, read.taints)),
        "resources": quantities(read.resources),
        "raw_options": read.options,
        "options": options_in_force(read_options(read.options, OPTION_NAMES).options),
    }


class _Clock:
    def __init__(self) -> None:
        self.time = parse_rfc3339("2026-08-22T12:00:00Z")

    def now(self) -> Instant:
        return self.time

    def monotonic(self) -> Duration:
        return Duration(self.time)

    async def sleep(self, duration: Duration) -> None:
        self.time = after(self.time, duration)


class _Story:
    def __init__(self, given: dict[str, Any], expected: dict[str, Any]) -> None:
        self.given, self.expected = given, expected
        self.clock = _Clock()
        self.aws = PretendedAws(self.clock)
        self.specs = list(given["auto_discovery"] or ())
        self.explicit = [parse_node_spec(each) for each in given["nodes"] or ()]
        api = AwsApi(self.aws)
        self.cloud = AwsCloud(
            api,
            self.clock,
            groups=self.explicit,
            discovery=joined(self.specs),
            types=InstanceTypes(api),
        )
        self.seen: dict[str, Any] = {}
        self.ended: set[str] = set()
        """What was deleted since the last refresh."""

    async def play(self) -> str | None:
        self.aws.set_world(self.given["world"])
        steps = [{"op": "refresh"}, *self.given["steps"]]
        upstream: Counter[str] = Counter()
        for number, (step, expected) in enumerate(zip(steps, self.expected["steps"], strict=False)):
            if step.get("world"):
                self.aws.set_world(step["world"])
            upstream.update(call["api"] for call in expected.get("calls") or ())
            self.aws.begin()
            if expected.get("panic"):
                return await self._no_crash(step)
            found = await self._step(step, expected)
            if found == _ENDED:
                return None
            if found:
                return f"step {number - 1} ({step['op']}): {found}"
            found = self._changes(expected)
            if found:
                return f"step {number - 1} ({step['op']}): {found}"
        if len(self.specs) > 1 or any("error" in step for step in self.expected["steps"]):
            return None  # ours has other groups to ask about
        more = {
            name: count
            for name, count in self.aws.reads.items()
            if name not in _UNCOUNTED and count > upstream[name]
        }
        return f"reads more often than upstream: {more}" if more else None

    async def _no_crash(self, step: dict[str, Any]) -> None:
        """Where upstream crashes ours has an answer or a refusal."""
        if step["op"] == "refresh":
            with suppress(CloudError):
                await self.cloud.refresh()
        self.cloud.views()

    async def _step(self, step: dict[str, Any], expected: dict[str, Any]) -> str | None:
        match step["op"]:
            case "refresh" | "refresh_soon":
                return await self._refresh(step["op"], expected)
            case "groups":
                return self._groups(expected)
            case "group_for_node":
                found = self.cloud.group_of(step["nodes"][0]["provider_id"])
                return difference("group", expected.get("group"), found)
            case "has_instance":
                return self._has(step, expected)
            case "increase":
                return await self._done(
                    expected, self.cloud.increase_size(step["group"], step.get("delta", 0))
                )
            case "atomic_increase":
                return await self._done(
                    expected, self.cloud.atomic_increase_size(step["group"], step.get("delta", 0))
                )
            case "decrease":
                return await self._decrease(step, expected)
            case "delete":
                return await self._delete(step, expected)
        return f"unknown step {step['op']}"

    async def _refresh(self, op: str, expected: dict[str, Any]) -> str | None:
        self.clock.time = after(self.clock.time, seconds(61 if op == "refresh" else 1))
        self.ended = set()
        has_bad_group = any(map(is_bad_group, self.aws.world["groups"]))
        try:
            groups = await self.cloud.refresh()
        except CloudError as error:
            return error_difference("refresh", {"error": True} if expected.get("error") else {}, str(error))
        self.seen = {group.id: group for group in groups}
        if expected.get("error"):
            return _ENDED if has_bad_group else f"expected {expected['error']}"
        return None

    def _groups(self, expected: dict[str, Any]) -> str | None:
        recorded = {group["id"]: group for group in expected["groups"]}
        ours = set(self.seen)
        if ours != set(recorded):
            return f"groups: expected {sorted(recorded)}, found {sorted(ours)}"
        views = self.cloud.views()
        for name, group in sorted(recorded.items()):
            found = group_difference(name, self._expected(group), views[name])
            if found:
                return found
        return None

    def _expected(self, group: dict[str, Any]) -> dict[str, Any]:
        adjusted = dict(group)
        raw = self.aws.group(group["id"])
        if raw is not None and "template" in group:
            adjusted["template"] = expected_template(self.aws.world, raw, group["template"])
        adjusted["instances"] = [
            one | {"status": one["status"] or {"state": "Creating"}} if is_placeholder(one["id"]) else one
            for one in group["instances"]
        ]
        return adjusted

    def _has(self, step: dict[str, Any], expected: dict[str, Any]) -> str | None:
        """A machine is there when a group lists it; what upstream says of other nodes is not asked by the port."""
        node = step["nodes"][0]
        if (node.get("annotations") or {}).get("k8s.io/cluster-autoscaler-enabled") == "false":
            return None  # A word of the node's, not of the machine's.
        return difference(
            "has_instance", bool(expected.get("has")), self.cloud.group_of(node["provider_id"]) is not None
        )

    async def _done(self, expected: dict[str, Any], call: Any) -> str | None:
        try:
            await call
        except CloudError as error:
            if expected.get("api_error"):
                return difference("api_error", expected["api_error"], error.error_code)
            return error_difference("error", expected, str(error))
        return None if expected.get("ok") else f"expected {expected.get('error')}, found no error"

    async def _decrease(self, step: dict[str, Any], expected: dict[str, Any]) -> str | None:
        delta = -step.get("delta", 0)
        known = self.cloud.views()[step["group"]]
        owed = sum(is_placeholder(one.provider_id) for one in known.instances or ())
        if owed and delta > 0 and known.target_size - delta >= len(known.instances or ()) - owed:
            with suppress(CloudError):
                await self.cloud.decrease_target_size(step["group"], delta)
            resized = _resize(step["group"], known.target_size - delta)
            return difference("calls", [resized], self.aws.changes()) or _ENDED
        # The number of machines in the text is without those that AWS owes.
        anything = expected | ({"error": True} if expected.get("error") else {})
        return await self._done(anything, self.cloud.decrease_target_size(step["group"], delta))

    async def _delete(self, step: dict[str, Any], expected: dict[str, Any]) -> str | None:
        there = self._instances(step["group"])
        found = await self._delete_difference(step, expected)
        gone = there - self._instances(step["group"])
        self.ended |= {node["provider_id"] for node in step["nodes"]} & gone
        return found

    def _instances(self, group: str) -> set[str]:
        asg = self.aws.group(group) or {"Instances": []}
        return {provider_id(one["AvailabilityZone"], one["InstanceId"]) for one in asg["Instances"]}

    async def _delete_difference(self, step: dict[str, Any], expected: dict[str, Any]) -> str | None:
        ids = [node["provider_id"] for node in step["nodes"]]
        known = self.cloud.views()[step["group"]]
        call = self.cloud.delete_nodes(step["group"], ids)
        here = {one.provider_id for one in known.instances or ()}
        asg = self.aws.group(step["group"]) or {"Instances": []}
        going = {
            one["InstanceId"] for one in asg["Instances"] if one["LifecycleState"].startswith("Terminat")
        }
        doomed = {one for one in ids if one not in self.ended and instance_of(one) not in going}
        anything = expected | (
            {"error": True} if expected.get("error") and not expected.get("api_error") else {}
        )
        if set(ids) <= here and known.target_size > known.min_size > known.target_size - len(doomed):
            found = await self._done({"error": True}, call)
            return found or difference("calls", [], self.aws.changes()) or _ENDED
        again = set(ids) & self.ended if set(ids) <= here else set()
        if again:
            with suppress(CloudError):
                await call
            twice = [
                one
                for one in self.aws.changes()
                if one["params"].get("InstanceId") in map(instance_of, again)
            ]
            return difference("ended again", [], twice) or _ENDED
        owed = [one for one in here if is_placeholder(one)]
        named = [one for one in set(ids) if is_placeholder(one)]
        if named and len(named) < len(owed) and "error" not in expected:
            size = asg["DesiredCapacity"] - len(named)
            with suppress(CloudError):
                await call
            return difference("calls", [_resize(step["group"], size)], self.aws.changes()[:1]) or _ENDED
        return await self._done(anything, call)

    def _changes(self, expected: dict[str, Any]) -> str | None:
        recorded = [
            call for call in expected.get("calls") or () if not call["api"].startswith(("Describe", "Get"))
        ]
        return difference("changes", _sorted(recorded), _sorted(self.aws.changes()))


def instance_of(provider_id: str) -> str:
    return provider_id.rpartition("/")[2]


def _resize(group: str, size: int) -> dict[str, Any]:
    params = {"AutoScalingGroupName": group, "DesiredCapacity": size, "HonorCooldown": False}
    return {"api": "SetDesiredCapacity", "params": params}


def _sorted(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(calls, key=lambda call: msgspec.json.encode(call, order="deterministic"))
