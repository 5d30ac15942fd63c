"""The stories of Azure: a scripted Resource Manager behind the production client."""

from __future__ import annotations

import asyncio
import copy
from typing import Any
from urllib.parse import unquote

import msgspec
from tests.conformance.cases import Case
from tests.conformance.clouds_azure import any_zone
from tests.conformance.clouds_playing import Answer, Calls
from tests.conformance.clouds_stories import Story, StoryClock

from kubetide.clouds.azure.api import ENDPOINT, ComputeApi, Subscription, refusal
from kubetide.clouds.azure.cloud import AzureCloud
from kubetide.clouds.azure.config import read_config
from kubetide.clouds.azure.settings import settings_of
from kubetide.clouds.common.rest import Patience, Request, Response, Rest

_CHANGES = ("VirtualMachineScaleSets.CreateOrUpdate", "VirtualMachineScaleSets.DeleteInstances")
SIGN_MATTERS = "a decrease must be negative; upstream's does not look at it, as it does nothing"
NEVER_JOINED = "a deletion of an instance that never joined lowers the target at once, as any other"


def play(case: Case) -> str | None:
    return asyncio.run(_AzureStory(case, _build, normal=_sorted_groups).play())


def _sorted_groups(answer: Answer) -> Answer:
    if "groups" not in answer:
        return answer
    return answer | {"groups": sorted(answer["groups"] or (), key=lambda group: group["id"].lower())}


class _AzureStory(Story):
    """Two differences on purpose: ``SIGN_MATTERS`` and ``NEVER_JOINED``."""

    _never_joined = False

    async def answer(self, step: Answer, expected: Answer) -> Answer:
        if step["op"] == "refresh":
            self._never_joined = False
        if step["op"] == "decrease" and step.get("delta", 0) >= 0 and expected.get("ok"):
            found = await super().answer(step, expected)
            return {"ok": True} if "must be negative" in found.get("error", "") else found
        if step["op"] == "has_instance":
            for detail in ("error", "api_error", "not_implemented"):
                expected.pop(detail, None)
        found = await super().answer(step, expected)
        if step["op"] == "delete" and any(one.get("unregistered") for one in step["nodes"]):
            self._never_joined = True
        if step["op"] == "groups":
            zones = {one["name"].lower(): _zones(one) for one in self.world.world["scale_sets"]}  # type: ignore[attr-defined]
            for group in found["groups"]:
                if "template" in group:
                    group["template"] = any_zone(group["template"], zones[group["id"].lower()])
            if self._never_joined:
                for group in (*found["groups"], *expected["groups"]):
                    group.pop("target", None)
        return found

    async def has_instance(self, step: Answer) -> Answer:
        provider_id = step["nodes"][0]["provider_id"].lower()
        machines = {
            one.provider_id.lower(): one
            for group in await self.cloud.readings()
            for one in group.instances or ()
        }
        return {"has": provider_id in machines and machines[provider_id].state != "Deleting"}


def _zones(scale_set: Answer) -> tuple[str, ...]:
    return tuple(f"{scale_set.get('location', '').lower()}-{zone}" for zone in scale_set.get("zones") or ())


def _build(given: Answer, clock: StoryClock) -> tuple[AzureCloud, World]:
    config = read_config(msgspec.json.encode(given["config"]).decode(), {})
    world = World(given["world"])
    rest = Rest(world.send, clock, refusal, patience=Patience(repeats=0))
    settings = settings_of(config, tuple(given["nodes"] or ()), tuple(given["auto_discovery"] or ()))
    where = Subscription(config.text("subscriptionId"), config.text("resourceGroup"))
    return AzureCloud(ComputeApi(rest, clock, None, where), settings, clock), world


class World:
    """Resource Manager from a script."""

    def __init__(self, world: Answer) -> None:
        self.calls = Calls(lambda call: call["op"].startswith(_CHANGES))
        self.replace(world)

    def replace(self, world: Answer) -> None:
        self.world = copy.deepcopy(world)

    async def send(self, request: Request) -> Response:
        body = msgspec.json.decode(request.body) if request.body else None
        parts = request.url.removeprefix(ENDPOINT).strip("/").split("/")
        call = _call(request, parts, body)
        self.calls.note(call)
        failure = (self.world.get("errors") or {}).get(call["op"])
        if failure:
            headers = {"retry-after": failure["retry_after"]} if failure.get("retry_after") else {}
            return _failed(failure["status"], failure["code"], headers)
        return self._answer(call)

    def _answer(self, call: Answer) -> Response:
        op, params = call["op"], call["params"]
        if op == "VirtualMachineScaleSets.List":
            return _good({"value": self.world["scale_sets"]})
        if op == "VirtualMachines.List(filter=virtualMachineScaleSet/id)":
            return _good({"value": self.machines(params["id"].rpartition("/")[2])})
        if op == "VirtualMachineScaleSetVMs.List(expand=instanceView)":
            return _good({"value": self.machines(params["name"])})
        scale_set = next((one for one in self.world["scale_sets"] if one["name"] == params["name"]), None)
        if scale_set is None:
            return _failed(404, "ResourceNotFound")
        if op == "VirtualMachineScaleSets.CreateOrUpdate":
            scale_set["sku"] = params["body"]["sku"]
        elif op.startswith("VirtualMachineScaleSets.DeleteInstances"):
            removed = params["instanceIds"]
            left = [one for one in self.machines(params["name"]) if _instance_id(one) not in removed]
            self.world["scale_set_vms"][params["name"]] = left
            scale_set["sku"]["capacity"] -= len(removed)
        return _good(scale_set)

    def machines(self, name: str) -> list[Answer]:
        found: list[Answer] = (self.world["scale_set_vms"] or {}).get(name) or []
        return found


def _instance_id(machine: Answer) -> str:
    return str(machine["id"].rpartition("/")[2])


def _good(answer: Any) -> Response:
    return Response(200, {}, msgspec.json.encode(answer))


def _failed(status: int, code: str, headers: dict[str, str] | None = None) -> Response:
    body = {"error": {"code": code, "message": "injected"}}
    return Response(status, headers or {}, msgspec.json.encode(body))


def _call(request: Request, parts: list[str], body: Any) -> Answer:
    params: Answer = {"resource_group": parts[3]}
    kind, rest = parts[6], parts[7:]
    query = {name: unquote(value) for name, value in request.query.items()}
    if kind == "virtualMachines":
        params["id"] = query["$filter"].split("'")[3]
        return {"op": "VirtualMachines.List(filter=virtualMachineScaleSet/id)", "params": params}
    if not rest:
        return {"op": "VirtualMachineScaleSets.List", "params": params}
    params["name"] = rest[0]
    if rest[1:] == ["virtualMachines"]:
        return {"op": "VirtualMachineScaleSetVMs.List(expand=instanceView)", "params": params}
    if rest[1:] == ["delete"]:
        force = query["forceDeletion"] == "true"
        params |= {"forceDeletion": force, "instanceIds": body["instanceIds"]}
        name = "VirtualMachineScaleSets.DeleteInstances"
        return {"op": f"{name}(forceDeletion)" if force else name, "params": params}
    if request.method == "PUT":
        return {"op": "VirtualMachineScaleSets.CreateOrUpdate", "params": params | {"body": body}}
    return {"op": "VirtualMachineScaleSets.Get", "params": params}
