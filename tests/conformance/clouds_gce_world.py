"""The stories of GCE: a scripted Compute Engine behind the production client."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Callable
from typing import Any

import msgspec
from tests.conformance.cases import Case
from tests.conformance.clouds_playing import Answer, Calls
from tests.conformance.clouds_stories import Story, StoryClock

from kubetide.clouds.common.rest import Patience, Request, Response, Rest
from kubetide.clouds.gce.api import ComputeApi, refusal
from kubetide.clouds.gce.cloud import GceCloud
from kubetide.clouds.gce.references import ROOT
from kubetide.clouds.gce.settings import GceSettings, parse_discoveries, parse_nodes
from kubetide.units.time import parse_duration

_CHANGES = ("/createInstances", "/deleteInstances", "/resize")
_RANDOM = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{4}$")


def play(case: Case) -> str | None:
    story = Story(case, _build, short_name=lambda group: group.rpartition("/")[2], normal=_sorted_groups)
    return asyncio.run(story.play())


def _sorted_groups(answer: Answer) -> Answer:
    if "groups" not in answer:
        return answer
    return answer | {"groups": sorted(answer["groups"] or (), key=lambda group: group["id"])}


def _build(given: Answer, clock: StoryClock) -> tuple[GceCloud, World]:
    world = World(given["world"])
    rest = Rest(world.send, clock, refusal, patience=Patience(repeats=0))
    settings = GceSettings(
        project=given["project"],
        location=given["location"],
        regional=given["regional"],
        nodes=parse_nodes(tuple(given["nodes"] or ())),
        discovery=parse_discoveries(tuple(given["auto_discovery"] or ())),
        min_refresh_wait=parse_duration(given["gce_mig_instances_min_refresh_wait_time"]),
        bulk_listing=bool(given.get("bulk_mig_instances_listing_enabled")),
    )
    return GceCloud(ComputeApi(rest, clock, None, settings.project), settings, clock), world


class World:
    """Compute Engine from a script."""

    def __init__(self, world: Answer) -> None:
        self.calls = Calls(lambda call: call["path"].endswith(_CHANGES))
        self.replace(world)

    def replace(self, world: Answer) -> None:
        self.world = copy.deepcopy(world)

    async def send(self, request: Request) -> Response:
        path = request.url.removeprefix(f"{ROOT}/")
        body = msgspec.json.decode(request.body) if request.body else None
        query = dict(request.query)
        if path.endswith("/resize"):
            query["size"] = self._size_of_upstream(path.split("/"), query["size"])
        self.calls.note(_call(request.method, path, query, body))
        status, answer = self._answer(path.split("/"), query, body)
        return Response(status, {}, msgspec.json.encode(answer))

    def _size_of_upstream(self, path: list[str], size: str) -> str:
        """Return the size that upstream sends: with suspended machines, though a resize sets how many run."""
        mig = self.mig(path[3], path[5]) or {}
        return str(int(size) + int(mig.get("targetSuspendedSize", 0)))

    def _answer(self, path: list[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        name = _method(path)
        errors = self.world.get("errors") or {}
        failure = errors.get(name) or errors.get(name.partition(".")[0]) or errors.get(path[-1])
        if failure:
            return failure, _error(failure, "injected", "x")
        return _ANSWERS[name](self, path, query, body)

    def migs(self, zone: str) -> list[Answer]:
        return [mig for mig in self.world["migs"] or () if mig["zone"].endswith(f"/{zone}")]

    def mig(self, zone: str, name: str) -> Answer | None:
        return next((mig for mig in self.migs(zone) if mig["name"] == name), None)

    def page(self, key: str, items: list[Any], query: dict[str, str]) -> tuple[int, Any]:
        start, size = int(query.get("pageToken", "0")), self.world.get("page_size") or len(items) or 1
        answer = {key: items[start : start + size]}
        return 200, answer | ({"nextPageToken": str(start + size)} if start + size < len(items) else {})

    def operation(self, number: int) -> tuple[int, Any]:
        return 200, {"name": f"op-{number}", "status": "PENDING"}


def _call(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
    call: Answer = {"method": method, "path": path}
    if query:
        call["query"] = query
    if body is not None:
        if path.endswith("/createInstances"):
            body = {"instances": [{"name": _RANDOM.sub("-RAND", one["name"])} for one in body["instances"]]}
        call["body"] = body
    return call


def _error(status: int, message: str, reason: str) -> Answer:
    return {"error": {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}}


def _missing(what: str) -> tuple[int, Any]:
    return 404, _error(404, f"{what} was not found", "notFound")


def _method(path: list[str]) -> str:
    if path[-1] in {"listManagedInstances", "createInstances", "deleteInstances", "resize"}:
        return path[-1]
    if path[-1] == "wait":
        return "zoneOperations.wait"
    kind = (
        "regions"
        if path[2] == "regions" and len(path) == 4
        else next(part for part in reversed(path) if part in _COLLECTIONS)
    )
    return f"{kind}.{'list' if path[-1] == kind else 'get'}"


_COLLECTIONS = ("instanceGroups", "instanceGroupManagers", "instanceTemplates", "machineTypes", "instances")


def _region(world: World, _path: list[str], _query: dict[str, str], _body: Any) -> tuple[int, Any]:
    zones = world.world.get("region_zones") or ()
    return 200, {"zones": [f"{ROOT}/projects/p1/zones/{zone}" for zone in zones]}


def _groups(world: World, path: list[str], query: dict[str, str], _body: Any) -> tuple[int, Any]:
    pattern = re.compile(query["filter"].removeprefix("name eq "))
    found = [{"name": mig["name"]} for mig in world.migs(path[3]) if pattern.fullmatch(mig["name"])]
    return world.page("items", found, query)


def _manager(world: World, path: list[str], _query: dict[str, str], _body: Any) -> tuple[int, Any]:
    mig = world.mig(path[3], path[5])
    return (200, mig) if mig else _missing(path[5])


def _template(world: World, path: list[str], _query: dict[str, str], _body: Any) -> tuple[int, Any]:
    found = [one for one in world.world["instance_templates"] if one["name"] == path[-1]]
    return (200, found[0]) if found else _missing(path[-1])


def _machine(world: World, path: list[str], _query: dict[str, str], _body: Any) -> tuple[int, Any]:
    found = [one for one in world.world["machine_types"] if one["name"] == path[-1]]
    return (200, found[0]) if found else _missing(path[-1])


def _managed(world: World, path: list[str], query: dict[str, str], _body: Any) -> tuple[int, Any]:
    return world.page("managedInstances", (world.world["managed_instances"] or {}).get(path[5]) or [], query)


def _create(world: World, path: list[str], _query: dict[str, str], body: Any) -> tuple[int, Any]:
    mig = world.mig(path[3], path[5])
    if mig is None:
        return _missing(path[5])
    mig["targetSize"] += len(body["instances"])
    return world.operation(2)


def _delete(world: World, path: list[str], _query: dict[str, str], body: Any) -> tuple[int, Any]:
    mig = world.mig(path[3], path[5])
    if mig is None:
        return _missing(path[5])
    mig["targetSize"] -= len(body["instances"])
    return world.operation(3)


def _resize(world: World, path: list[str], query: dict[str, str], _body: Any) -> tuple[int, Any]:
    mig = world.mig(path[3], path[5])
    if mig is None:
        return _missing(path[5])
    mig["targetSize"] = int(query["size"])
    return world.operation(1)


def _wait(world: World, path: list[str], _query: dict[str, str], _body: Any) -> tuple[int, Any]:
    answer: Answer = {"name": path[5], "status": "DONE"}
    failed = world.world.get("operation_error")
    return 200, answer | ({"error": failed} if failed else {})


_ANSWERS: dict[str, Callable[[World, list[str], dict[str, str], Any], tuple[int, Any]]] = {
    "regions.get": _region,
    "instanceGroups.list": _groups,
    "instanceGroupManagers.list": lambda world, path, query, _body: world.page(
        "items", world.migs(path[3]), query
    ),
    "instanceGroupManagers.get": _manager,
    "instanceTemplates.get": _template,
    "machineTypes.get": _machine,
    "listManagedInstances": _managed,
    "createInstances": _create,
    "deleteInstances": _delete,
    "resize": _resize,
    "zoneOperations.wait": _wait,
}
