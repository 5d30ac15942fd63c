"""Carries out actions: calls to the cloud, taints, evictions; returns the outcome of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Sequence
from itertools import groupby
from typing import Final

import msgspec

from kubetide.acting import in_parallel, update_object
from kubetide.nodes.decision import (
    Action,
    AddTaint,
    AskExpander,
    CreateGroup,
    DecreaseTarget,
    DeleteGroup,
    DeleteInstances,
    DeleteNodes,
    EvictPod,
    IncreaseSize,
    NominatePod,
    Outcome,
    Outcomes,
    RemoveTaint,
)
from kubetide.nodes.facts.nodes import DELETION_CANDIDATE, TO_BE_DELETED
from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.objects.base import Json
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.node import Taint
from kubetide.objects.pod import is_finished
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import (
    ApiError,
    CloudError,
    CloudUnsupported,
    CloudWithheld,
    NotFound,
    Withheld,
)
from kubetide.units.time import Duration, seconds

_PARALLEL = 10
_TIME_TO_BEGIN: Final = seconds(3)
"""After so long a step begins no further deletion or eviction, so that ticks come in between: upstream's loop waits for none."""
Ask = Callable[[AskExpander], Awaitable[tuple[str, ...]]]
_SKIPPED = Outcome("skipped")


class Actor:
    """Carries out actions. Errors become outcomes; those that no port raises are in ``bugs``, too."""

    def __init__(self, cluster: Cluster, cloud: Cloud, clock: Clock, ask: Ask | None = None) -> None:
        """``ask`` calls the external expander."""
        self._clock = clock
        self._soft_until: Duration | None = None
        self._ask = ask
        self._cluster = cluster
        self._cloud = cloud
        self.bugs: list[Exception] = []
        """What the last actions failed at that is no error of a port."""

    async def act(self, actions: Sequence[Action], *, soft_taint_time: Duration | None = None) -> Outcomes:
        """Carry out the actions in order: neighbours of one kind in parallel, but increases one after another.

        So are deletions in one group: a cloud reads its size before each.

        Soft taints of candidates that have not been begun after ``soft_taint_time`` are skipped; None for no such limit.
        """
        self.bugs = []
        begun = self._clock.monotonic()
        self._soft_until = None if soft_taint_time is None else Duration(begun + soft_taint_time)
        results: list[Outcome] = []
        for kind, run in groupby(actions, type):
            batch = list(run)
            if kind is IncreaseSize:
                unmade = _unmade(actions, results)
                results += await self._increase(
                    [one for one in batch if isinstance(one, IncreaseSize)], unmade
                )
            elif kind is DeleteNodes:
                results += await self._delete([one for one in batch if isinstance(one, DeleteNodes)])
            elif kind is EvictPod:
                results += await self._evict_all(batch)
            else:
                results += await in_parallel(batch, self._do, limit=_PARALLEL)
        return Outcomes(tuple(results))

    async def _increase(self, actions: Sequence[IncreaseSize], unmade: Container[str]) -> list[Outcome]:
        """Stop at the first that fails, as upstream does, unless they are to be tried all.

        ``unmade``: groups that the cloud would not create.
        """
        results: list[Outcome] = []
        failed = False
        for action in actions:
            if (failed and not action.parallel) or action.group in unmade:
                results.append(_SKIPPED)
                continue
            outcome = await self._do(action)
            failed = failed or outcome.status == "failed"
            results.append(outcome)
        return results

    async def _delete(self, actions: Sequence[DeleteNodes]) -> list[Outcome]:
        """Make the calls of each group one after another; that one fails stops no other. Those of a slow cloud are put off."""
        by_group: dict[str, list[int]] = {}
        for at, action in enumerate(actions):
            by_group.setdefault(action.group, []).append(at)
        results: dict[int, Outcome] = {}
        until = self._clock.monotonic() + _TIME_TO_BEGIN

        async def of_group(calls: list[int]) -> None:
            for number, at in enumerate(calls):
                is_late = number > 0 and self._clock.monotonic() >= until
                results[at] = _SKIPPED if is_late else await self._do(actions[at])

        await in_parallel(list(by_group.values()), of_group, limit=_PARALLEL)
        return [results[at] for at in range(len(actions))]

    async def _evict_all(self, actions: Sequence[Action]) -> list[Outcome]:
        """Ask for the evictions in parallel. Those of a slow API server, or of a slow webhook of it, are put off."""
        until = self._clock.monotonic() + _TIME_TO_BEGIN

        async def one_of(numbered: tuple[int, Action]) -> Outcome:
            number, action = numbered
            is_late = number >= _PARALLEL and self._clock.monotonic() >= until
            return _SKIPPED if is_late else await self._do(action)

        return await in_parallel(list(enumerate(actions)), one_of, limit=_PARALLEL)

    def _is_too_late(self, action: Action) -> bool:
        if self._soft_until is None or not isinstance(action, AddTaint | RemoveTaint):
            return False
        return action.key == DELETION_CANDIDATE and self._clock.monotonic() >= self._soft_until

    async def _do(self, action: Action) -> Outcome:
        if self._is_too_late(action):
            return _SKIPPED
        try:
            match action:
                case IncreaseSize():
                    await self._increase_one(action)
                case CreateGroup():
                    return await self._create_group(action)
                case DeleteGroup():
                    await self._cloud.delete_group(action.group)
                case DecreaseTarget():
                    await self._cloud.decrease_target_size(action.group, action.delta)
                case DeleteInstances():
                    await self._cloud.delete_nodes(action.group, action.provider_ids, force=action.force)
                case DeleteNodes():
                    return await self._delete_nodes(action)
                case AskExpander():
                    if self._ask is None:
                        return Outcome("failed", "no expander is connected")
                    return Outcome(groups=await self._ask(action))
                case AddTaint():
                    await self._add_taint(action)
                case RemoveTaint():
                    await self._remove_taint(action)
                case EvictPod():
                    await self._evict(action)
                case NominatePod():
                    await self._nominate(action)
        except (CloudWithheld, Withheld) as error:
            return Outcome("withheld", str(error))
        except CloudError as error:
            return Outcome(
                "failed",
                str(error),
                error.error_class,
                error.error_code,
                error.cause,
                error.error_type,
                may_be_done=error.may_be_done,
            )
        except ApiError as error:
            return Outcome("failed", str(error), "Other", error.reason)
        except Exception as error:  # noqa: BLE001  # the others go on; the tick fails once all are absorbed
            self.bugs.append(error)
            return Outcome("failed", f"{type(error).__name__}: {error}", error_type="internalError")
        return Outcome()

    async def _create_group(self, action: CreateGroup) -> Outcome:
        made = await self._cloud.create_group(action.new)
        if made.id != action.new.id:
            return Outcome("failed", f"the cloud created {made.id} in the place of {action.new.id}")
        return Outcome(made=made)

    async def _increase_one(self, action: IncreaseSize) -> None:
        if action.atomic:
            try:
                await self._cloud.atomic_increase_size(action.group, action.delta)
            except CloudUnsupported:
                pass
            else:
                return
        await self._cloud.increase_size(action.group, action.delta)

    async def _delete_nodes(self, action: DeleteNodes) -> Outcome:
        """Read the nodes' pods once more: what the decision did not know of is not killed."""
        expected = dict.fromkeys(action.expected_pods)
        for node in action.nodes:
            listing = await self._cluster.list(PODS, fields=f"spec.nodeName={node}")
            for pod in listing.items:
                key = (pod.metadata.namespace, pod.metadata.name)
                stays = is_finished(pod) or is_daemon_set_pod(pod) or is_mirror_pod(pod)
                if not stays and key not in expected:
                    return Outcome(
                        "failed", f"pod {'/'.join(key)} has come to node {node}; it is not deleted"
                    )
        await self._cloud.delete_nodes(action.group, action.provider_ids)
        return Outcome()

    async def _add_taint(self, action: AddTaint) -> None:
        taint = msgspec.to_builtins(Taint(key=action.key, value=action.value, effect=action.effect))

        def change(spec: Json) -> Json:
            changed = {**spec, "taints": [*_taints_but(spec, action.key), taint]}
            return {**changed, "unschedulable": True} if action.cordon else changed

        await self._change_spec(action.node, change)

    async def _remove_taint(self, action: RemoveTaint) -> None:
        def change(spec: Json) -> Json:
            changed = {**spec, "taints": _taints_but(spec, action.key)}
            if action.uncordon:
                changed.pop("unschedulable", None)
            return changed

        await self._change_spec(action.node, change)

    async def _change_spec(self, name: str, change: Callable[[Json], Json]) -> None:
        """Change the spec of a node as it is now."""
        await update_object(
            self._cluster, NODES, name, lambda node: {**node, "spec": change(node.get("spec") or {})}
        )

    async def _evict(self, action: EvictPod) -> None:
        try:
            await self._cluster.evict(
                namespace=action.namespace,
                pod=action.name,
                uid=action.uid,
                grace_period_s=action.grace_period_s,
            )
        except NotFound:
            return

    async def _nominate(self, action: NominatePod) -> None:
        patch: Json = {"metadata": {"uid": action.uid}, "status": {"nominatedNodeName": action.node}}
        try:
            await self._cluster.patch(
                PODS, action.name, patch, namespace=action.namespace, subresource="status"
            )
        except NotFound:
            return


def ending_error(actions: Sequence[Action], results: Sequence[Outcome]) -> CloudError | ApiError | None:
    """Return the error of the first call whose failure makes the tick one that failed; None for none.

    Source: Cluster Autoscaler, RunOnce, which returns the errors of sizes that it cannot correct and of nodes that it
    cannot taint for deletion.
    """
    for action, outcome in zip(actions, results, strict=True):
        if outcome.status != "failed":
            continue
        if isinstance(action, DecreaseTarget) and action.why == "size":
            return CloudError(f"the target of group {action.group} could not be corrected: {outcome.error}")
        if isinstance(action, AddTaint) and action.key == TO_BE_DELETED:
            return ApiError(f"node {action.node} could not be tainted for deletion: {outcome.error}")
    return None


def _taints_but(spec: Json, key: str) -> list[Json]:
    """Return the taints of a node's spec without those of the key."""
    return [one for one in spec.get("taints") or () if one["key"] != key]


def _unmade(actions: Sequence[Action], results: Sequence[Outcome]) -> set[str]:
    """Return the groups that were to be created and were not: to ask for nodes of them would be in vain."""
    return {
        action.new.id
        for action, outcome in zip(actions, results, strict=False)
        if isinstance(action, CreateGroup) and outcome.status == "failed"
    }
