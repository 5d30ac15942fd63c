"""The nodes suite: recorded loops of upstream's Cluster Autoscaler.

The node controller of production runs in virtual time over the embedded store and a scripted cloud, which follows the
rules of the recording: machines come, join and vanish only as a story's changes say. What a step's loop and the
deletions after it did is compared with what was recorded; any of a step's alternatives is right, and ends the story.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import yaml
from msgspec.structs import replace
from tests.conformance.cases import Case
from tests.conformance.nodes_outcomes import (
    changed,
    event_of,
    first_of,
    option_of,
    scale_up_status_of,
    status_of,
)
from tests.conformance.nodes_world import Cloud, Cluster, Recorder
from tests.tasks import stop

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.nodes.controller import NodesController
from kubetide.nodes.expander import ExpanderError, parse_expanders
from kubetide.nodes.registry.update import not_begun
from kubetide.nodes.scale_up.tick import Round
from kubetide.nodes.settings import Settings
from kubetide.objects.base import Json
from kubetide.objects.kinds import CONFIG_MAPS, NODES, REPLICATION_CONTROLLERS, STORED_KINDS, Kind
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, CloudError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.runtime.upstream import understand
from kubetide.units.time import ZERO, Duration, Instant, after, parse_duration, parse_rfc3339
from kubetide.watching import Caches

_START = parse_rfc3339("2026-01-01T00:00:00Z")
_KINDS: dict[str, Kind[Any]] = {kind.kind: kind for kind in (*STORED_KINDS, REPLICATION_CONTROLLERS)}


def cases(document: Any) -> Iterator[Case]:
    if isinstance(document, list):
        yield from (case for case in document if "nodeGroups" in case)


def case_id(case: Case) -> str:
    return str(case["id"])


def group(case: Case) -> str:
    return str(case["group"])


def has_steps(case: Case) -> bool:
    return len(case.get("steps", ())) > 1


def metric_types(case: Case) -> set[str]:  # of the protocol
    return set()


def first_difference(case: Case) -> str | None:
    """Play a story and return where it differs from what it expects."""
    if "buildError" in case:
        try:
            parse_expanders(str(case["options"]["expander"]))
        except ExpanderError as error:
            return None if case["buildError"] in str(error) else f"the error is {error}"
        return "the configuration was not refused"
    return run_virtual(lambda clock: _Story(case, clock).play(), start=_START)


def settings_of(options: Json) -> Settings:
    """Return the settings of a story's options, which are any flags of upstream's command line."""
    arguments = [
        f"--{name}={one}"
        for name, value in options.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    config = understand(arguments).config
    assert config is not None, "no story asks for help"
    return config.loops.of(Settings)


class _Story:
    def __init__(self, case: Case, clock: Clock) -> None:
        self._case = case
        self._clock = clock
        self._store = Store(_KINDS.values())
        self._cluster = Cluster(EmbeddedCluster(self._store, clock, seed=1), self._store)
        self._cloud = Cloud(case)
        self._recorder = Recorder()
        self._drains: dict[str, bool] = {}
        settings = settings_of(case["options"])
        self._namespace, self._status_name = settings.namespace, settings.status_config_map_name
        for kind, items in case["cluster"]["objects"].items():
            for item in items:
                self._put(kind, item)
        for one in case["cluster"]["nodes"]:
            self._put("Node", one["node"])
        self._caches = Caches(self._cluster, clock)
        self._controller = NodesController(
            self._cluster,
            self._cloud,
            clock,
            self._recorder,
            None,
            replace(settings, status_interval=ZERO),
            seed=1,
            caches=self._caches,
        )
        # Upstream's random pick is the smallest id in the recording.
        self._controller.state.draw = lambda *_: 0.0

    async def play(self) -> str | None:
        keeping = asyncio.create_task(self._caches.run())  # the story drives the ticks itself
        await self._controller._gatherer.synced()
        try:
            for number, step in enumerate(self._case.get("steps", ())):
                found = await self._step(step)
                expected = step["expect"]
                wrong = first_of(f"step {number}", expected, found)
                if wrong is None:
                    continue
                others = step.get("expectAlternatives", ())
                return None if any(first_of("", one, found) is None for one in others) else wrong
            return None
        finally:
            await stop(keeping)

    async def _step(self, step: Json) -> Json:
        now = parse_rfc3339(step["now"])
        await self._let_run(now)
        for change in step.get("changes", ()):
            self._change(change)
        await self._catch_up()
        before = self._cluster.at_start = self._nodes()
        self._recorder.events.clear()
        self._cluster.evicted.clear()
        cloud = self._cloud
        for log in (cloud.raised, cloud.refused, cloud.decreased, cloud.deleted):
            log.clear()
        with suppress(CloudError, ApiError):  # a tick that has failed ends the tick, not the story
            await self._controller.tick()
        asked, statuses = self._asked(), self._scale_up_statuses()
        view = self._controller.state.view
        healthy = view is not None and view.healthy
        status = self._controller.state.memory.scale_down.status
        document = self._recorder.status
        self._note_drains()
        await self._let_run(after(now, parse_duration(step.get("settle", "0s"))))
        return {
            "scaleUps": list(cloud.raised),
            "failedScaleUps": list(cloud.refused),
            "decreasedTargets": list(cloud.decreased),
            "targetSizes": {name: one.target_size for name, one in cloud.groups.items()},
            "deletedNodes": self._deleted(before),
            "evictedPods": list(self._cluster.evicted),
            **changed(before, self._nodes()),
            "events": [event_of(one) for one in self._recorder.events],
            "unneededNodes": []
            if status.unneeded is None or status.result == "ScaleDownNotTried"
            else list(status.unneeded),
            "scaleDownStatus": status_of(status),
            "clusterStateHealthy": healthy,
            "statusConfigMap": yaml.load(document, yaml.BaseLoader) if document else None,  # texts only
            "statusConfigMapAnnotations": self._annotations(),
            "scaleUpStatuses": statuses,
            "expander": asked,
        }

    def _annotations(self) -> Json:
        found = self._store.get(CONFIG_MAPS, (self._namespace, self._status_name))
        return {} if found is None else dict(found.json["metadata"].get("annotations") or {})

    async def _let_run(self, until: Instant) -> None:
        """Let time run, and the deletions in flight with it."""
        while (wake := self._controller.next_wake()) is not None and wake <= until:
            await self._clock.sleep(Duration(wake - self._clock.now()))
            await self._catch_up()
            await self._controller.wake()
            self._note_drains()
        await self._clock.sleep(Duration(until - self._clock.now()))

    async def _catch_up(self) -> None:
        for _ in range(5):
            await self._clock.sleep(ZERO)

    def _note_drains(self) -> None:
        deletions = self._controller.state.memory.scale_down.deletions
        self._drains.update({name: one.drain for name, one in deletions.items()})

    def _nodes(self) -> dict[str, Json]:
        return {one.key[1]: one.json for one in self._store.select(NODES, Selection(NODES))}

    def _put(self, kind: str, item: Json) -> None:
        if kind not in _KINDS:
            return
        found = _KINDS[kind]
        meta = item["metadata"]
        key = (meta.get("namespace", "default") if found.namespaced else "", meta["name"])
        self._store.put(found, key, {"apiVersion": found.api_version, "kind": found.kind, **item})

    def _change(self, change: Json) -> None:
        cloud = self._cloud
        match change["op"]:
            case "add" | "update":
                self._put(change["kind"], change["object"])
                if change["op"] == "add" and change["kind"] == "Node" and change.get("nodeGroup"):
                    provider_id = change["object"]["spec"]["providerID"]
                    there = cloud.groups[change["nodeGroup"]].instances or ()
                    if all(one.provider_id != provider_id for one in there):
                        cloud.put(change["nodeGroup"], {"id": provider_id})
            case "delete":
                kind = _KINDS[change["kind"]]
                key = (change.get("namespace", "default") if kind.namespaced else "", change["name"])
                self._store.remove(kind, key)
            case "addInstance" | "setInstance":
                cloud.put(change["nodeGroup"], change["instance"])
            case "removeInstance":
                cloud.drop(change["nodeGroup"], (change["id"],))
            case "setGroup":
                names = {"size": "target_size", "min": "min_size", "max": "max_size"}
                fields = {names[name]: value for name, value in change.items() if name in names}
                cloud.groups[change["nodeGroup"]] = replace(cloud.groups[change["nodeGroup"]], **fields)
            case "addNodeGroup":
                cloud.add(change["group"], {})
            case "increaseSizeError":
                cloud.increase_errors[change["nodeGroup"]] = change.get("message", "")
            case "deleteNodesError":
                cloud.delete_errors[change["nodeGroup"]] = change.get("message", "")
            case "evictionError":
                self._cluster.refusals[change.get("namespace", "default"), change["name"]] = change["count"]

    def _deleted(self, before: Mapping[str, Json]) -> list[Json]:
        names = {one["spec"].get("providerID"): name for name, one in before.items()}
        found = []
        for group_id, provider_id, force, error in self._cloud.deleted:
            name = names.get(provider_id, provider_id)
            kind = {True: "drain", False: "empty", None: "cleanup"}[self._drains.get(name)]
            # What is cleaned up was deleted as an instance, also where it has a node.
            entry = {"node": provider_id if kind == "cleanup" else name, "group": group_id, "kind": kind}
            found.append(entry | ({"force": True} if force else {}) | ({"error": error} if error else {}))
        return found

    def _asked(self) -> list[Json]:
        tick = self._controller.state.tick
        return [
            {"options": [option_of(one) for one in attempt.options], "chosen": attempt.chosen[0].group.id}
            for attempt in (tick.rounds if tick is not None else ())
            if attempt.options and attempt.chosen
        ]

    def _scale_up_statuses(self) -> list[Json]:
        """Return the attempts of the loop; a loop that never came to scale-up has one that says so."""
        tick = self._controller.state.tick
        state = self._controller.state
        if not_begun(state):
            return []
        attempts = tick.rounds if tick is not None else [Round("ScaleUpNotTried")]
        if len(attempts) > 1 and not attempts[0].considered and attempts[0].result != "ScaleUpError":
            # Groups below their minimum were checked in place of pods, so there was nothing to report.
            attempts = attempts[1:]
        return [scale_up_status_of(one) for one in attempts]
