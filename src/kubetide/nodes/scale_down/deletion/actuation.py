"""Deletions in flight: advances each by one step when it is due.

    waiting -> [read pods] -> evicting -> terminating -> delaying -> ready -> [read pods] -> deleting
                   |             |             |                       |                        |
                   +-------------+-------------+-----------------------+------ failure ---------+
                                                                                  |
                                                                             untainting

An empty node goes from ``waiting`` to ``delaying``, by way of ``evicting`` where DaemonSet pods are
evicted. Where the picture says ``read pods``, the step asks for the node's pods as the API server has
them, and goes on when they are in ``state.live_pods``: no machine is deleted on what a cache says.

Source: Cluster Autoscaler, actuator, evictor and deletion batcher (times, limits and messages).
"""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import (
    Action,
    Commands,
    DeleteNodes,
    EventRecord,
    EvictPod,
    RemoveTaint,
)
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_down.deletion.deletions import (
    EVICTION_FAILED,
    INTERNAL,
    NOT_AS_A_WHOLE,
    end_after,
    evictions_left,
    failure,
    goes_whole,
    has_no_group,
    machine_is_listed,
    next_wake,
    refusals,
    waits_for_others,
    with_pods_seen,
)
from kubetide.nodes.scale_down.deletion.evictions import left_on_node
from kubetide.nodes.scale_down.deletion.pod_checks import check_new_pods, check_pods
from kubetide.nodes.scale_down.memory import DeleteResult, Deletion, Eviction
from kubetide.nodes.scale_down.names import DELAY_DELETION_PREFIX
from kubetide.nodes.settings import drain_turns
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.units.time import Duration, Instant, after, before, minutes, seconds

POLL, RETRY = seconds(5), seconds(10)
HEADROOM: Duration = seconds(30)
FRESH: Duration = seconds(5)
"""How old the last reading of a node's pods may be when its machine is deleted."""

CALL_LOST: Duration = minutes(10)
"""Long after any write's deadline: reached only when the outcome of a call never came."""

_MAX_READS, _QUICK_UNTAINTS = 3, 5
_LATER = minutes(1)  # between further tries to take a taint off


def actuate(state: State, now: Instant) -> Commands:
    """Advance each deletion, and return the evictions, calls and readings that are due."""
    memory = state.memory.scale_down
    machine = _Machine(state, now)
    for name in sorted(memory.deletions):
        moved = machine.advance(memory.deletions[name])
        if moved is None:
            del memory.deletions[name]
        else:
            memory.deletions[name] = moved
    machine.delete_ready()
    return Commands(
        actions=tuple(machine.actions),
        events=tuple(machine.events),
        read_pods=tuple(machine.reads),
        wake_at=next_wake(memory.deletions),
        reasons=tuple(machine.reasons),
    )


class _Machine:
    """One run over all deletions."""

    def __init__(self, state: State, now: Instant) -> None:
        self._state = state
        self._settings = state.settings
        self._memory = state.memory.scale_down
        self._now = now
        self._evictions_left = evictions_left(state, now)
        self.actions: list[Action] = []
        self._failed_groups: dict[str, None] = {}
        self.events: list[EventRecord] = []
        self.reads: list[str] = []
        self.reasons: list[Reason] = []

    def advance(self, deletion: Deletion) -> Deletion | None:
        """Move a deletion through as many phases as it can pass now; None when it is over."""
        while deletion.due <= self._now:
            moved = self._step(deletion)
            if moved is None or moved is deletion or moved.phase == deletion.phase:
                return moved
            deletion = moved
        return deletion

    def _step(self, deletion: Deletion) -> Deletion | None:
        if deletion.phase == "untainting":
            return self._untaint(deletion)
        if not deletion.in_flight:
            return None
        node = self._state.nodes.get(deletion.node)
        if node is None and (deletion.phase == "delaying" or not machine_is_listed(self._state, deletion)):
            self._note_vanished(deletion)
            return None
        if has_no_group(self._state, deletion):
            # Upstream evicts all pods before it finds that nobody can delete the machine.
            return self._fail(deletion, INTERNAL, f"node group {deletion.group} is gone")
        match deletion.phase:
            case "waiting":
                return self._check_first(deletion)
            case "evicting":
                return self._evict(deletion)
            case "terminating":
                return self._await_pods(deletion)
            case "delaying" if node is not None:
                return self._await_annotations(deletion, node)
            case "marking" | "deleting":
                # The call's outcome never came (the process stopped in between): give the node back.
                return self._fail(deletion, INTERNAL, "the outcome of the last call is unknown")
            case _:
                return deletion

    # ── phases ──

    def _check_first(self, deletion: Deletion) -> Deletion:
        """The taint has had its time: look at what is really on the node, and begin."""
        pods = self._read(deletion)
        if isinstance(pods, Deletion):
            return pods
        deletion = with_pods_seen(deletion, pods, self._now)
        problem, evictions = check_pods(self._state, deletion, pods, self._now)
        if problem:
            return self._fail(deletion, INTERNAL, problem)
        deletion = replace(deletion, pods=evictions)
        if not evictions and not deletion.drain:
            return self._delay(deletion)
        until = after(self._now, self._settings.max_pod_eviction_time)
        first = min((one.stage for one in evictions), default=0)
        return replace(deletion, phase="evicting", stage=first, until=until, due=self._now)

    def _evict(self, deletion: Deletion) -> Deletion:
        """Ask pods to go, again every ten seconds; a pod that must go and refuses for too long ends the drain.

        A DaemonSet pod that refuses as long is left behind.
        """
        assert deletion.until is not None
        in_turn = [eviction for eviction in deletion.pods if eviction.stage == deletion.stage]
        waits = False
        open_pods: list[Eviction] = []
        for eviction in in_turn:
            if eviction.evicted:
                continue
            if eviction.next_try > self._now:
                waits = True
                continue
            # The first try is made even with no time at all; one that a cap held back is not made late.
            if self._now < deletion.until or (eviction.tries == 0 and self._now == deletion.until):
                open_pods.append(eviction)
            elif eviction.needed:
                return self._refused(deletion)
        if not waits and not open_pods:
            # Nothing on an empty node need be waited for.
            return self._wait_for_pods(deletion) if deletion.drain else self._next_turn(deletion)
        for eviction in open_pods:
            self._ask_eviction(deletion.node, eviction)
        # The answers set the next due time; without any, look again when the next try is allowed.
        return replace(deletion, due=after(self._now, RETRY))

    def _refused(self, deletion: Deletion) -> Deletion:
        emitted, text = refusals(deletion)
        self.events += emitted
        return self._fail(
            deletion,
            EVICTION_FAILED,
            f"Failed to drain node /{deletion.node}, due to following errors: {text}",
        )

    def _wait_for_pods(self, deletion: Deletion) -> Deletion:
        grace = seconds(drain_turns(self._settings)[deletion.stage].seconds)
        until = after(after(self._now, grace), HEADROOM)
        return replace(deletion, phase="terminating", until=until, due=self._now)

    def _await_pods(self, deletion: Deletion) -> Deletion:
        """Look every five seconds whether the evicted pods are gone; what has landed since is evicted as well."""
        until = deletion.until
        assert until is not None
        pods = self._read(deletion)
        if isinstance(pods, Deletion):
            return pods
        deletion = with_pods_seen(deletion, pods, self._now)
        again = self._evict_new_pods(deletion, pods)
        if again is not None:
            return again
        if not left_on_node([one for one in deletion.pods if one.stage == deletion.stage], pods):
            return self._next_turn(deletion)
        if self._now >= until:
            return self._fail(
                deletion,
                EVICTION_FAILED,
                f"Failed to drain node /{deletion.node}: pods remaining after timeout",
            )
        return replace(deletion, due=after(self._now, POLL))

    def _next_turn(self, deletion: Deletion) -> Deletion:
        """Evict the pods whose turn comes next; after the last, go on."""
        later = [one.stage for one in deletion.pods if one.stage > deletion.stage]
        if not later:
            return self._delay(deletion)
        until = after(self._now, self._settings.max_pod_eviction_time)
        return replace(deletion, phase="evicting", stage=min(later), until=until, due=self._now)

    def _evict_new_pods(self, deletion: Deletion, pods: tuple[Pod, ...]) -> Deletion | None:
        """Evict pods that landed after the first look, or give up; None when there are none."""
        problem, more = check_new_pods(self._state, deletion, pods, self._now)
        if problem:
            return self._fail(deletion, INTERNAL, problem)
        if not more:
            return None
        return replace(
            deletion,
            phase="evicting",
            pods=(*deletion.pods, *(replace(one, stage=deletion.stage) for one in more)),
            landings=deletion.landings + 1,
            until=after(self._now, self._settings.max_pod_eviction_time),
            due=self._now,
        )

    def _delay(self, deletion: Deletion) -> Deletion:
        if deletion.node not in self._state.nodes:
            return self._make_ready(deletion)
        until = after(self._now, self._settings.node_deletion_delay_timeout)
        return replace(deletion, phase="delaying", until=until, due=self._now)

    def _await_annotations(self, deletion: Deletion, node: Node) -> Deletion:
        """Wait for others who hold the node by annotation, but not for ever."""
        assert deletion.until is not None
        held = any(name.startswith(DELAY_DELETION_PREFIX) for name in node.metadata.annotations or {})
        if held and self._now < deletion.until:
            return replace(deletion, due=min(after(self._now, POLL), deletion.until))
        return self._make_ready(deletion)

    def _make_ready(self, deletion: Deletion) -> Deletion:
        until = after(self._now, self._settings.node_deletion_batcher_interval)
        return replace(deletion, phase="ready", until=until, due=until, tries=0)

    # ── the cloud's call ──

    def delete_ready(self) -> None:
        """Make the calls that are due, with nodes whose pods were just read."""
        self._keep_whole_groups()
        groups: dict[str, list[Deletion]] = {}
        for name in sorted(self._memory.deletions):
            deletion = self._memory.deletions[name]
            if deletion.phase == "ready":
                groups.setdefault(deletion.group, []).append(deletion)
        for group in sorted(groups):
            if waits_for_others(self._state, group):
                for one in groups[group]:
                    self._memory.deletions[one.node] = replace(one, due=after(self._now, POLL))
                continue
            for batch in self._batches(group, groups[group]):
                self._delete(group, batch)

    def _batches(self, group: str, ready: list[Deletion]) -> list[list[Deletion]]:
        """Return the nodes of each call: one alone, so that each has its own outcome, unless they are batched or go as a whole."""
        if self._settings.node_deletion_batcher_interval > 0 or goes_whole(self._state, group):
            return [ready]
        return [[one] for one in ready]

    def _delete(self, group: str, batch: list[Deletion]) -> None:
        """Make the call when its time has come and the pods of all its nodes were just read."""
        # The interval begins with the first node, for groups that go as a whole with the last one.
        first_or_last = max if goes_whole(self._state, group) else min
        at = first_or_last(one.until or one.due for one in batch)
        if at > self._now:
            for one in batch:
                self._memory.deletions[one.node] = replace(one, due=at)
            return
        checked = [one for one in map(self._check_last, batch) if one is not None]
        ready = sum(self._memory.deletions[one.node].phase == "ready" for one in batch)
        if checked and len(checked) == ready:
            self._call(group, checked)

    def _keep_whole_groups(self) -> None:
        """Give up the other nodes of a group that goes as a whole or not at all: now those that wait, others once ready."""
        for name in sorted(self._memory.deletions):
            one = self._memory.deletions[name]
            if one.group in self._failed_groups and goes_whole(self._state, one.group) and one.in_flight:
                one = self._memory.deletions[name] = replace(one, given_up=True)
            if one.given_up and one.phase == "ready":
                failed = self._fail(one, "NodeDeleteErrorFailedToDelete", NOT_AS_A_WHOLE)
                self._memory.deletions[name] = self._step(failed) or failed

    def _check_last(self, deletion: Deletion) -> Deletion | None:
        """Return the deletion if its node's pods were read just now and let it go; else None."""
        if deletion.checked is not None and before(self._now, FRESH) <= deletion.checked:
            return deletion
        pods = self._read(deletion)
        if isinstance(pods, Deletion):
            self._memory.deletions[deletion.node] = pods
            return None
        deletion = with_pods_seen(deletion, pods, self._now)
        again = self._evict_new_pods(deletion, pods)
        if again is not None:
            moved = self.advance(again)
            assert moved is not None
            self._memory.deletions[deletion.node] = moved
            return None
        self._memory.deletions[deletion.node] = deletion
        return deletion

    def _call(self, group: str, batch: list[Deletion]) -> None:
        expected = dict.fromkeys(key for one in batch for key in one.found)
        self.actions.append(
            DeleteNodes(
                group=group,
                nodes=tuple(one.node for one in batch),
                provider_ids=tuple(one.provider_id for one in batch),
                expected_pods=tuple(expected),
            )
        )
        for one in batch:
            self._memory.deletions[one.node] = replace(one, phase="deleting", due=after(self._now, CALL_LOST))

    # ── giving up ──

    def _untaint(self, deletion: Deletion) -> Deletion | None:
        if deletion.node not in self._state.nodes:
            return None
        self.actions.append(RemoveTaint(deletion.node, TO_BE_DELETED, uncordon=deletion.cordoned))
        # Nobody else takes the taint off: it is tried until it works, after a lost lease too.
        tries = min(deletion.tries + 1, _QUICK_UNTAINTS)
        due = after(self._now, RETRY if tries < _QUICK_UNTAINTS else _LATER)
        return replace(deletion, due=due, tries=tries)

    def _note_vanished(self, deletion: Deletion) -> None:
        """The Node object is gone, and its machine too: there is nothing to give back."""
        if deletion.phase == "delaying":
            # Only here upstream looks at the Node again.
            absent = f'failed to get node {deletion.node}: node "{deletion.node}" not found'
            self._fail(deletion, "NodeDeleteErrorFailedToDelete", absent)
            return
        self._memory.results[deletion.node] = gone = DeleteResult(INTERNAL, "the node is gone")
        why = {"group": deletion.group, "why": INTERNAL, "error": gone.error}
        self.reasons.append(reason("DeletionFailed", deletion.node, **why))

    def _fail(self, deletion: Deletion, result: str, error: str) -> Deletion:
        self._failed_groups[deletion.group] = None
        emitted, because, given_back = failure(self._state, deletion, result, error, self._now)
        self.events.append(emitted)
        self.reasons.append(because)
        return given_back

    # ── helpers ──

    def _read(self, deletion: Deletion) -> tuple[Pod, ...] | Deletion:
        """Return the node's pods if they were just read; else asks for them, or gives up after some tries."""
        pods = self._state.live_pods.get(deletion.node)
        if pods is not None:
            return tuple(sorted(pods, key=key_of))
        if not deletion.reading:
            self.reads.append(deletion.node)
            return replace(deletion, reading=True, due=self._now)
        if deletion.tries + 1 >= _MAX_READS:
            return self._fail(deletion, INTERNAL, "the node's pods could not be read from the API server")
        retry = after(self._now, POLL)
        return replace(
            deletion, reading=False, tries=deletion.tries + 1, due=retry, until=end_after(deletion, retry)
        )

    def _ask_eviction(self, node: str, eviction: Eviction) -> None:
        if self._evictions_left <= 0:
            return
        self._evictions_left -= 1
        self.actions.append(
            EvictPod(
                namespace=eviction.namespace,
                name=eviction.name,
                uid=eviction.uid,
                node=node,
                grace_period_s=eviction.grace_s,
            )
        )
