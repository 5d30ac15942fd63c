"""Plays a story of the clouds suite: a provider over a scripted cloud, step by step.

The provider is the production one; only ``Send``, below its REST client, is the script.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from tests.conformance.cases import Case
from tests.conformance.clouds_playing import Answer, Calls, compare, instances_of, options_of, template_of

from kubetide.clouds.common.readings import GroupReading
from kubetide.ports.errors import CloudError, CloudUnsupported
from kubetide.units.time import Duration, Instant, minutes, seconds


class StoryClock:
    """Time that passes only when it is slept through or moved."""

    def __init__(self) -> None:
        self.time = Instant(1_700_000_000 * 10**9)

    def now(self) -> Instant:
        return self.time

    def monotonic(self) -> Duration:
        return Duration(self.time)

    async def sleep(self, duration: Duration) -> None:
        self.time = Instant(self.time + duration)

    def advance(self, duration: Duration) -> None:
        self.time = Instant(self.time + duration)


class Script:
    """A scripted cloud: what it holds, and the calls that it was sent."""

    def __init__(self, world: Answer, changes: Collection[str]) -> None:
        """Take what it holds, and the names of the actions that change something."""
        self.calls = Calls(lambda call: call["action"] in changes)
        self.replace(world)

    def replace(self, world: Answer) -> None:
        self.world = copy.deepcopy(world)


class PlayedCloud(Protocol):
    """The methods that a story needs of a provider, beyond the port."""

    async def renew(self) -> None: ...

    async def readings(self) -> list[GroupReading]: ...

    def known_groups(self) -> list[str]: ...

    async def group_of(self, provider_id: str) -> str | None: ...

    async def increase_size(self, group_id: str, delta: int) -> None: ...

    async def atomic_increase_size(self, group_id: str, delta: int) -> None: ...

    async def decrease_target_size(self, group_id: str, delta: int) -> None: ...

    async def delete_nodes(self, group_id: str, provider_ids: list[str], *, force: bool = False) -> None: ...


class ScriptedWorld(Protocol):
    """A cloud's state in API shape that answers ``Send``."""

    calls: Calls

    def replace(self, world: Answer) -> None: ...


Build = Callable[[Answer, StoryClock], tuple[PlayedCloud, ScriptedWorld]]
REFRESH_AFTER = minutes(6)
BELOW_MINIMUM = "deletions may not pass the minimum, which upstream checks once a batch, with a size that may be older than the last"
GONE_ALREADY = "a machine that was deleted and is gone is in no group; upstream remembers it, and orders its deletion again"


class Story:
    """One case, played to its first difference.

    Args:
        case: The case.
        build: Makes the provider and its scripted cloud; raises CloudError for bad settings.
        has_options: Whether the provider reads options.
        group_id: Makes the full id of a group from the short name in a step.
        refresh_after: How much time passes before a refresh.
    """

    def __init__(
        self,
        case: Case,
        build: Build,
        *,
        has_options: bool = True,
        short_name: Callable[[str], str] = str,
        normal: Callable[[Answer], Answer] = dict,
        refresh_after: Duration = REFRESH_AFTER,
    ) -> None:
        self.case, self.build = case, build
        self.has_options = has_options
        self.short_name, self.normal, self.refresh_after = short_name, normal, refresh_after
        self.clock, self.code = StoryClock(), ""
        self._deleted: set[str] = set()
        self._shrunk: set[str] = set()

    async def play(self) -> str | None:
        """Return the first difference, None where all answers are the recorded ones."""
        given, expected = self.case["input"], self.case["expect"]["steps"]
        try:
            self.cloud, self.world = self.build(given, self.clock)
            found: Answer = await self._outcome(self.cloud.renew())
        except CloudError as error:
            found, self.world = {"error": str(error)}, None  # type: ignore[assignment]  # there is none
        wrong = self._step_difference("build", expected[0], found)
        if wrong or "error" in expected[0] or "api_error" in expected[0]:
            return wrong
        for number, (step, answer) in enumerate(zip(given["steps"], expected[1:], strict=True), 1):
            where = f"step {number} {step['op']}"
            if step.get("world"):
                self.world.replace(step["world"])
            found = await self.answer(step, answer)
            if (
                "error" in found
                and "ok" in answer
                and step["op"] == "delete"
                and self._may_refuse(step, found)
            ):
                return None
            wrong = self._step_difference(where, answer, found)
            if wrong:
                return wrong
            if step["op"] == "delete" and "ok" in found:
                self._deleted |= {one["provider_id"] for one in step["nodes"]}
                self._shrunk.add(step["group"])
        # Before open orders are withdrawn, ours reads the instances anew, so that none that just came is lost.
        allowed = sum(step["op"] == "decrease" for step in given["steps"])
        return self.world.calls.rest_difference(allowed)

    def _may_refuse(self, step: Answer, found: Answer) -> bool:
        """Whether a deletion is refused on purpose: ``BELOW_MINIMUM``, ``GONE_ALREADY``."""
        if "min size reached" in found["error"]:
            return len(step["nodes"]) > 1 or step["group"] in self._shrunk
        gone = any(one["provider_id"] in self._deleted for one in step["nodes"])
        return gone and "doesn't belong to a known" in found["error"]

    def _step_difference(self, where: str, expected: Answer, found: Answer) -> str | None:
        recorded = expected.get("calls") or []
        plain = {key: value for key, value in expected.items() if key not in {"calls", "api_error", "status"}}
        if "api_error" in expected and "error" in found:
            plain["error"] = True
            if self.code != expected["api_error"]:
                return f"{where}: expected the API's error {expected['api_error']}, found {self.code}"
        for group in plain.get("groups") or ():
            if group.get("options", ()) is None:  # the provider says nothing: the flags hold
                group["options"] = options_of(None)
        wrong = compare(where, self.normal(plain), self.normal(found))
        if wrong or self.world is None:
            return wrong
        return self.world.calls.step_difference(where, recorded)

    async def answer(self, step: Answer, expected: Answer) -> Answer:
        op, ids = step["op"], [one["provider_id"] for one in step.get("nodes") or ()]
        if op in {"refresh", "refresh_soon"}:
            self.clock.advance(self.refresh_after if op == "refresh" else seconds(1))
            return await self._outcome(self.cloud.renew())
        if op == "groups":
            return await self._groups()
        if op == "group_for_node":
            try:
                return {"group": await self.cloud.group_of(ids[0])}
            except CloudError as error:
                return {"error": str(error)}
        if op == "has_instance":
            return await self.has_instance(step)
        group = self._full_id(step["group"])
        delta = step.get("delta", 0)
        if op == "increase":
            return await self._outcome(self.cloud.increase_size(group, delta))
        if op == "atomic_increase":
            return await self._outcome(self.cloud.atomic_increase_size(group, delta))
        if op == "decrease":
            return await self._outcome(self.cloud.decrease_target_size(group, -delta))
        assert op == "delete", op
        found = await self._outcome(self.cloud.delete_nodes(group, ids))
        return _with_names(found, step)

    async def has_instance(self, step: Answer) -> Answer:
        raise NotImplementedError(step["op"])

    async def _outcome(self, call: Awaitable[Any]) -> Answer:
        try:
            await call
        except CloudUnsupported:
            return {"not_implemented": True}
        except CloudError as error:
            self.code = error.error_code
            return {"error": str(error)}
        return {"ok": True}

    def _full_id(self, name: str) -> str:
        return next((one for one in self.cloud.known_groups() if self.short_name(one) == name), name)

    async def _groups(self) -> Answer:
        return {"groups": [self._group(one) for one in await self.cloud.readings()]}

    def _group(self, one: GroupReading) -> Answer:
        found: Answer = {"id": one.id, "min": one.min_size, "max": one.max_size}
        if self.has_options:
            found["options"] = options_of(one.options)
        found |= {"target_error": one.target_error} if one.target_error else {"target": one.target}
        if one.instances_error:
            found["instances_error"] = one.instances_error
        else:
            found["instances"] = instances_of(one.instances, stateless=one.stateless)
        if one.template_error or one.template is None:
            return found | {"template_error": one.template_error}
        return found | {"template": template_of(one.template.node)}


def _with_names(found: Answer, step: Answer) -> Answer:
    """Put nodes' names, which upstream's texts have, in place of provider ids."""
    if "error" in found:
        for one in step["nodes"]:
            if found["error"].startswith(one["provider_id"]):
                found["error"] = one["name"] + found["error"][len(one["provider_id"]) :]
    return found
