"""Plays the cases of Alibaba Cloud: parsing, and whole stories against a scripted API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
from tests.conformance.cases import Case
from tests.conformance.clouds_playing import Answer, attempt, compare
from tests.conformance.clouds_stories import Script, Story, StoryClock

from kubetide.clouds.alibaba.api import AlibabaApi, refusal
from kubetide.clouds.alibaba.cloud import AlibabaCloud
from kubetide.clouds.alibaba.config import check_file, read_environment
from kubetide.clouds.alibaba.references import parse_provider_id
from kubetide.clouds.common.rest import Patience, Request, Response, Rest
from kubetide.clouds.common.sizes import parse_node_specs
from kubetide.clouds.common.tokens import Keys
from kubetide.ports.errors import CloudError

_CHANGES = ("ScaleWithAdjustment", "RemoveInstances")
REFUSED_REMOVAL = "a removal that the cloud refuses is an error; upstream does not look at the answers"


def first_difference(case: Case) -> str | None:
    if case["kind"] == "world":
        return asyncio.run(_AlibabaStory(case, _build, has_options=False).play())
    found = attempt(lambda: _PLAYERS[case["kind"]](case["input"]), CloudError)
    return compare("expect", case["expect"], found)


class _AlibabaStory(Story):
    """One difference on purpose: ``REFUSED_REMOVAL``."""

    async def answer(self, step: Answer, expected: Answer) -> Answer:
        found = await super().answer(step, expected)
        if step["op"] == "delete" and expected.get("ok") and "were not removed" in found.get("error", ""):
            return {"ok": True}
        return found


def _config(given: Answer) -> Answer:
    if given["file"]:
        try:
            check_file(given["file"])
        except CloudError:
            return {"file_error": True}
    found = read_environment(given["env"])
    if found.auth == "metadata service":
        return {"auth": found.auth}
    shown = found._asdict() | {"valid": True}
    shown.pop("access_key_secret")
    return shown


_PLAYERS: dict[str, Callable[[Answer], Answer]] = {
    "provider_id": lambda given: {"instance": parse_provider_id(given["id"])},
    "config": _config,
}


def _build(given: Answer, clock: StoryClock) -> tuple[AlibabaCloud, World]:
    world = World(given["world"], _CHANGES)

    async def keys() -> Keys:
        return Keys("id", "secret")

    rest = Rest(world.send, clock, refusal, patience=Patience(repeats=0))
    api = AlibabaApi(rest, clock, keys, given["region"])
    return AlibabaCloud(api, parse_node_specs(given["nodes"] or ()), given["region"], clock), world


class World(Script):
    """Alibaba Cloud from a script."""

    async def send(self, request: Request) -> Response:
        action = request.headers["x-acs-action"]
        parameters = dict(parse_qsl(urlsplit(request.url).query, keep_blank_values=True))
        parameters.pop("RegionId")  # which upstream's client adds below what is recorded
        self.calls.note({"action": action, "params": parameters})
        failure = (self.world.get("errors") or {}).get(action)
        if failure:
            return Response(400, {}, msgspec.json.encode({"Code": failure, "Message": "injected"}))
        return Response(200, {}, msgspec.json.encode(_ANSWERS[action](self, parameters)))


def _numbered(parameters: Answer, name: str) -> list[str]:
    return [value for key, value in parameters.items() if key.startswith(f"{name}.")]


def _groups(world: World, given: Answer) -> Answer:
    requested = _numbered(given, "ScalingGroupId")
    found = [one for one in world.world.get("scaling_groups") or () if one["ScalingGroupId"] in requested]
    return {"TotalCount": len(found), "ScalingGroups": {"ScalingGroup": found}}


def _configurations(world: World, given: Answer) -> Answer:
    requested = _numbered(given, "ScalingConfigurationId")
    listed = world.world.get("scaling_configurations") or ()
    found = [one for one in listed if one["ScalingConfigurationId"] in requested]
    return {"TotalCount": len(found), "ScalingConfigurations": {"ScalingConfiguration": found}}


def _instances(world: World, given: Answer) -> Answer:
    listed = world.world.get("scaling_instances") or ()
    found = [one for one in listed if one["ScalingGroupId"] == given["ScalingGroupId"]]
    size = int(given["PageSize"])
    start = size * (int(given["PageNumber"]) - 1)
    page = found[start : start + size]
    return {"TotalCount": len(found), "ScalingInstances": {"ScalingInstance": page}}


def _scale(world: World, given: Answer) -> Answer:
    for one in world.world["scaling_groups"]:
        if one["ScalingGroupId"] == given["ScalingGroupId"]:
            size = int(given["AdjustmentValue"])
            one["DesiredCapacity"] = size
            if not one["EnableDesiredCapacity"]:
                one["ActiveCapacity"], one["PendingCapacity"], one["InitCapacity"] = size, 0, 0
    return {"ScalingActivityId": "asa-1"}


def _remove(world: World, given: Answer) -> Answer:
    removed: Any = given["InstanceId.1"]
    left = [one for one in world.world["scaling_instances"] if one["InstanceId"] != removed]
    world.world["scaling_instances"] = left
    return {"ScalingActivityId": "asa-2"}


_ANSWERS: dict[str, Callable[[World, Answer], Answer]] = {
    "DescribeScalingGroups": _groups,
    "DescribeScalingConfigurations": _configurations,
    "DescribeScalingInstances": _instances,
    "DescribeInstanceTypes": lambda world, _given: {
        "InstanceTypes": {"InstanceType": world.world.get("instance_types") or []}
    },
    "ScaleWithAdjustment": _scale,
    "RemoveInstances": _remove,
}
