"""Plays the cases of Tencent Cloud: parsing, and whole stories against a scripted API."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Callable
from typing import Any

import msgspec
from tests.conformance.cases import Case
from tests.conformance.clouds_playing import Answer, attempt, compare, taints_of
from tests.conformance.clouds_stories import Script, Story, StoryClock

from kubetide.clouds.common.rest import Patience, Request, Response, Rest
from kubetide.clouds.common.sizes import parse_node_specs
from kubetide.clouds.common.tokens import Keys
from kubetide.clouds.tencent import template
from kubetide.clouds.tencent.api import TencentApi, refusal
from kubetide.clouds.tencent.cloud import TencentCloud
from kubetide.clouds.tencent.model import Tag
from kubetide.clouds.tencent.references import parse_provider_id
from kubetide.ports.errors import CloudError

_CHANGES = ("ModifyAutoScalingGroup", "RemoveInstances")
_INVALID = re.compile(r"(returned a invalid response: ).*")
# The code is the promise; message and request are the cloud's.
_MESSAGE = re.compile(r", Message=.*")
# Upstream prints the maximum where its text says the minimum.
_MINIMUM = re.compile(r"( min:)-?\d+$")


def first_difference(case: Case) -> str | None:
    if case["kind"] == "world":
        return asyncio.run(Story(case, _build, has_options=False, normal=_normal).play())
    found = attempt(lambda: _PLAYERS[case["kind"]](case["input"]), CloudError)
    return compare("expect", case["expect"], found)


def _provider_id(given: Answer) -> Answer:
    return {"instance": parse_provider_id(given["id"]), "zone": ""}


def _tags(given: Answer) -> Answer:
    tags = msgspec.convert(given["tags"] or (), tuple[Tag, ...])
    return {
        "labels": template.labels(tags),
        "taints": taints_of(template.taints(tags)),
        "resources": {name: str(size) for name, size in template.resources(tags).items()},
    }


_PLAYERS: dict[str, Callable[[Answer], Answer]] = {"provider_id": _provider_id, "tags": _tags}


def _normal(answer: Answer) -> Answer:
    answer = copy.deepcopy(answer)
    if isinstance(answer.get("error"), str):
        answer["error"] = _MESSAGE.sub("", _MINIMUM.sub(r"\1", answer["error"]))
    for group in answer.get("groups") or ():
        if isinstance(group.get("target_error"), str):
            group["target_error"] = _INVALID.sub(r"\1", group["target_error"])
    return answer


def _build(given: Answer, clock: StoryClock) -> tuple[TencentCloud, World]:
    world = World(given["world"], _CHANGES)

    async def keys() -> Keys:
        return Keys("id", "secret")

    rest = Rest(world.send, clock, refusal, patience=Patience(repeats=0))
    api = TencentApi(rest, clock, keys, given["region"])
    return TencentCloud(api, parse_node_specs(given["nodes"] or ()), given["region"], clock), world


class World(Script):
    """Tencent Cloud from a script."""

    async def send(self, request: Request) -> Response:
        action, parameters = request.headers["X-TC-Action"], msgspec.json.decode(request.body)
        self.calls.note(
            {
                "action": action,
                "params": parameters,
                "service": request.headers["Host"].partition(".")[0],
                "version": request.headers["X-TC-Version"],
            }
        )
        failure = (self.world.get("errors") or {}).get(action)
        answer = (
            {"Error": {"Code": failure, "Message": "injected"}}
            if failure
            else _ANSWERS[action](self, parameters)
        )
        return Response(200, {}, msgspec.json.encode({"Response": answer | {"RequestId": "r"}}))

    def group(self, name: str) -> Answer:
        return next(one for one in self.world["groups"] if one["AutoScalingGroupId"] == name)


def _filtered(world: World, key: str, name: str, values: list[str]) -> list[Answer]:
    return [one for one in world.world.get(key) or () if one[name] in values]


def _groups(world: World, given: Answer) -> Answer:
    found = _filtered(world, "groups", "AutoScalingGroupId", given["AutoScalingGroupIds"])
    return {"TotalCount": len(found), "AutoScalingGroupSet": found}


def _configurations(world: World, given: Answer) -> Answer:
    requested = given["LaunchConfigurationIds"]
    found = _filtered(world, "launch_configurations", "LaunchConfigurationId", requested)
    return {"TotalCount": len(found), "LaunchConfigurationSet": found}


def _instances(world: World, given: Answer) -> Answer:
    found = _filtered(world, "instances", "AutoScalingGroupId", given["Filters"][0]["Values"])
    size = min(given["Limit"], world.world.get("max_limit") or given["Limit"])
    page = found[given["Offset"] : given["Offset"] + size]
    return {"TotalCount": len(found), "AutoScalingInstanceSet": page}


def _types(world: World, given: Answer) -> Answer:
    found = _filtered(world, "instance_types", "InstanceType", given["Filters"][0]["Values"])
    return {"InstanceTypeConfigSet": found}


def _modify(world: World, given: Answer) -> Answer:
    world.group(given["AutoScalingGroupId"])["DesiredCapacity"] = given["DesiredCapacity"]
    return {}


def _remove(world: World, given: Answer) -> Answer:
    removed: Any = given["InstanceIds"]
    world.world["instances"] = [one for one in world.world["instances"] if one["InstanceId"] not in removed]
    world.group(given["AutoScalingGroupId"])["DesiredCapacity"] -= len(removed)
    return {"ActivityId": "asa-1"}


_ANSWERS: dict[str, Callable[[World, Answer], Answer]] = {
    "DescribeAutoScalingGroups": _groups,
    "DescribeLaunchConfigurations": _configurations,
    "DescribeAutoScalingInstances": _instances,
    "DescribeInstanceTypeConfigs": _types,
    "DescribeSubnets": lambda world, given: {
        "SubnetSet": _filtered(world, "subnets", "SubnetId", given["SubnetIds"])
    },
    "DescribeZones": lambda world, _given: {"ZoneSet": world.world.get("zones") or []},
    "ModifyAutoScalingGroup": _modify,
    "RemoveInstances": _remove,
}
