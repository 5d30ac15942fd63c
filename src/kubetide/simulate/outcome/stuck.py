"""What could not scale, at the end of a run: the configuration is at fault, and waiting would not help.

Each is a notice of the summary and the report, and with ``--strict`` the run's exit status.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kubetide.elastic.keda.state import State as ScaledObjects
from kubetide.elastic.state import State as ElasticWorkloads
from kubetide.embedded.apiserver.store.request import Request
from kubetide.nodes.controller import NodesController
from kubetide.nodes.explain.equivalent_pods import explain_equivalent_pods, refusals_text
from kubetide.nodes.facts.pods import owner_text
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import ELASTIC_WORKLOADS, HPAS, SCALED_OBJECTS
from kubetide.objects.meta import Condition
from kubetide.objects.pod import Pod, is_finished, pod_condition
from kubetide.objects.timetables import ScaledObject
from kubetide.schedules.state import State as TimeTables
from kubetide.schedules.warnings import autoscalers, size_conflicts
from kubetide.simulate.scenarios.build import Manifests
from kubetide.units.time import (
    Duration,
    Instant,
    between,
    format_duration,
    format_rfc3339,
    minutes,
    parse_rfc3339,
)

if TYPE_CHECKING:
    from kubetide.simulate.world import World

_LEAST = minutes(5)
"""What has lasted for less may still be on its way."""
_MOST = 5
"""HPAs, time tables and the like that are named, and owners of waiting pods: of these each is decided again for all groups."""
_MEANT = frozenset({"ScalingDisabled"})
"""Reasons of an HPA that does not scale because somebody wants it so."""


def stuck(world: World, manifests: Manifests) -> tuple[str, ...]:
    """Return a sentence for each object that cannot scale, or not as it says.

    These are HPAs, time tables, ScaledObjects and ElasticWorkloads, pods without a node, and objects whose owner is missing.
    """
    now = min(world.clock.now(), world.end)
    least = min(_LEAST, Duration(between(world.start, now) // 2))
    hpas = list(_hpas(world, now, least))
    if (left := len(hpas) - _MOST) > 0:
        others = "HorizontalPodAutoscaler has" if left == 1 else "HorizontalPodAutoscalers have"
        hpas[_MOST:] = [f"{left} other {others} not scaled either"]
    unfollowed = list(_unfollowed(world))
    if (left := len(unfollowed) - _MOST) > 0:
        unfollowed[_MOST:] = [f"{left} other warnings about time tables and the like"]
    return (*owners_missing(manifests), *hpas, *unfollowed, *_pods(world, now, least))


def owners_missing(manifests: Manifests) -> Iterator[str]:
    """Yield a sentence for each object that is deleted at once because its owner is missing."""
    for kind, json in manifests:
        metadata = json["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            name = f"{metadata.get('namespace') or 'default'}/" if kind.namespaced else ""
            yield (
                f"{kind.kind} {name}{metadata.get('name')}: its owner {owner.get('kind')} {owner.get('name')} (uid "
                f"{owner.get('uid')}) is not there, so it is deleted as Kubernetes deletes it; leave metadata.ownerReferences "
                "out"
            )


def _hpas(world: World, now: Instant, least: Duration) -> Iterator[str]:
    for hpa in hpas_of(world):
        failed = next((one for one in hpa.status.conditions or () if _is_lasting(one, now, least)), None)
        if failed is None:
            continue
        name = f"{hpa.metadata.namespace}/{hpa.metadata.name}"
        yield (
            f"HorizontalPodAutoscaler {name}: has not scaled since {_time(failed.last_transition_time)}: {failed.reason}: "
            f"{failed.message} (ask: kubetide explain hpa {name})"
        )


def _unfollowed(world: World) -> Iterator[str]:
    """Yield what is wrong with each time table, ScaledObject and ElasticWorkload; fields that play no part are left out."""
    for one in world.loops:
        state = getattr(one.loop, "state", None)
        if isinstance(state, TimeTables):
            for key, table in sorted(state.tables.items()):
                warned = [text for text in state.progress[key].warned if text not in table.notes]
                yield from _warnings(key[0], "schedule", key[1:], warned)
        elif isinstance(state, ScaledObjects):
            for name, memory in sorted(state.memory.items()):
                # That a run asks no servers is a notice of its own.
                if not memory.offline:
                    yield from _warnings(SCALED_OBJECTS.kind, "scaledobject", name, memory.warned)
        elif isinstance(state, ElasticWorkloads):
            for name in sorted(state.scene.workloads):
                verdict = state.scene.verdict(name)
                texts = [f"is not followed: {verdict.reason}: {verdict.message}"] if verdict.reason else []
                yield from _warnings(ELASTIC_WORKLOADS.kind, "elasticworkload", name, texts)


def _warnings(kind: str, word: str, key: tuple[str, str], texts: Iterable[str]) -> Iterator[str]:
    name = "/".join(key)
    for text in texts:
        yield f"{kind} {name}: {text} (ask: kubetide explain {word} {name})"


def conflicts(world: World) -> tuple[str, ...]:
    """Return a sentence for each time table whose workload an HPA or a ScaledObject scales, too."""
    states = [getattr(one.loop, "state", None) for one in world.loops]
    tables = [
        table
        for state in states
        if isinstance(state, TimeTables)
        for _, table in sorted(state.tables.items())
    ]
    if not tables:
        return ()
    listing = world.cluster.rest.handle(Request("list", SCALED_OBJECTS)).listing or ()
    scalers = autoscalers(hpas_of(world), (one.read_as(ScaledObject) for one in listing))
    return tuple(
        f"{one.table.kind} {one.table.namespace}/{one.table.name}: {one.seen}; {one.fix}"
        for one in size_conflicts(tables, scalers)
    )


def hpas_of(world: World) -> list[HorizontalPodAutoscaler]:
    """Return the existing HPAs."""
    listing = world.cluster.rest.handle(Request("list", HPAS)).listing or ()
    return [revision.read_as(HorizontalPodAutoscaler) for revision in listing]


def _is_lasting(condition: Condition, now: Instant, least: Duration) -> bool:
    return (
        condition.type in ("AbleToScale", "ScalingActive")
        and condition.status == "False"
        and condition.reason not in _MEANT
        and condition.last_transition_time is not None
        and between(parse_rfc3339(condition.last_transition_time), now) >= least
    )


def _pods(world: World, now: Instant, least: Duration) -> Iterator[str]:
    waiting: dict[str, list[Pod]] = {}
    for _, pod in sorted(world.pods.objects.items()):
        since = pod.metadata.creation_timestamp
        if (
            not pod.spec.node_name
            and not is_finished(pod)
            and pod.metadata.deletion_timestamp is None
            and since is not None
            and between(parse_rfc3339(since), now) >= least
        ):
            waiting.setdefault(owner_text(pod), []).append(pod)
    for owner, pods in list(waiting.items())[:_MOST]:
        first = min(pods, key=lambda pod: pod.metadata.creation_timestamp or "")
        name = f"{first.metadata.namespace}/{first.metadata.name}"
        number = f"{len(pods)} {'pod' if len(pods) == 1 else 'pods'}"
        yield (
            f"{owner}: {number} without a node for {format_duration(least)} or more, the first since {_time(first.metadata.creation_timestamp)}: "
            f"{_why(world, first, pods)} (ask: kubetide explain pod {name})"
        )
    if len(waiting) > _MOST:
        yield f"pods of {len(waiting) - _MOST} other owners are without a node as well"


def _why(world: World, pod: Pod, alike: list[Pod]) -> str:
    """Return why a pod waits as others of its owner do: what the groups say to it, or else what the scheduler says."""
    state = next((one.loop.state for one in world.loops if isinstance(one.loop, NodesController)), None)
    key = (pod.metadata.namespace, pod.metadata.name)
    if state is not None and key in state.pods:
        keys = [(one.metadata.namespace, one.metadata.name) for one in alike]
        found = explain_equivalent_pods(state, [one for one in keys if one in state.pods], world.clock.now())
        if found.status == "refused":
            return f"{refusals_text(found)}. {found.sentence}"
        if found.status != "placed":
            return found.sentence
    condition = pod_condition(pod, "PodScheduled")
    return (
        condition.message if condition is not None and condition.message else "the scheduler has not said why"
    )


def _time(text: str | None) -> str:
    return format_rfc3339(parse_rfc3339(text)) if text else "the beginning"
