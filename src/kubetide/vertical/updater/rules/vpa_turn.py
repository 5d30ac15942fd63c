"""The pods of one VPA in one loop: who is evicted or resized, in which order, and within which budget."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from kubetide.objects.meta import Key, key_of
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import (
    IN_PLACE,
    IN_PLACE_OR_RECREATE,
    INITIAL,
    OFF,
    VerticalPodAutoscaler,
)
from kubetide.units.quantity import QuantityError
from kubetide.units.time import Instant, after, seconds
from kubetide.vertical.resources.boost import BoostError, expired_boosts, has_boost, is_boosted
from kubetide.vertical.resources.capping import running_containers
from kubetide.vertical.resources.pod_resources import empty_annotations
from kubetide.vertical.resources.policies import update_mode
from kubetide.vertical.updater import events
from kubetide.vertical.updater.decision import Command, Evict, Outcome, Resize
from kubetide.vertical.updater.rules.groups import groups_of, uid_of
from kubetide.vertical.updater.rules.in_place import (
    Decision,
    capped_targets,
    decide_in_place,
    given_up,
    is_worth_a_try,
    recommended_targets,
    resize_condition,
)
from kubetide.vertical.updater.rules.late_changes import count_late
from kubetide.vertical.updater.rules.permits import beyond_most, is_open
from kubetide.vertical.updater.rules.priority import (
    Candidate,
    Priority,
    change_text,
    has_quick_oom,
    meets_requirements,
    priority_of,
    requirements_text,
    why_not,
)
from kubetide.vertical.updater.rules.provisioning import (
    NOT_LOOKED,
    replacement_of,
    with_capacity_first,
)
from kubetide.vertical.updater.rules.recommendations import Recommendations
from kubetide.vertical.updater.rules.turn import OutOfTime, Turn
from kubetide.vertical.updater.rules.unboost import resize_marks, resize_patches
from kubetide.vertical.updater.rules.windows import WindowsError

Dialogue = Generator[Command, Outcome, None]

_RETRY = seconds(10)
"""When the end of a boost that failed, or had no budget, is tried again."""

_IN_PLACE_MODES = frozenset({IN_PLACE_OR_RECREATE, IN_PLACE})


class VpaTurn:
    """The pods of one VPA in one loop."""

    def __init__(self, turn: Turn, vpa: VerticalPodAutoscaler, pods: Sequence[Pod]) -> None:
        self.turn = turn
        self.state = turn.state
        self.settings = turn.state.settings
        self.vpa = vpa
        self.key: Key = vpa.metadata.namespace, vpa.metadata.name
        self.mode = update_mode(vpa.spec)
        self.groups = groups_of(pods, vpa, turn.state.workloads, self.settings, self._say)
        self.pods = [pod for pod in pods if not self._is_changing(pod)]
        self.counts = turn.counts_of(vpa)
        self.counts.controlled = len(pods)
        self._recommendations = Recommendations(vpa, turn.state, self._say)
        self._recommended = recommended_targets(vpa.status.recommendation)

    def _say(self, code: str, pod: Key | None = None, detail: str = "") -> None:
        self.turn.say(code, pod, self.key, detail)

    def _is_changing(self, pod: Pod) -> bool:
        """Return whether an earlier change of the pod counts as made, and take that from its group's budget."""
        late = self.turn.changing.get(uid_of(pod))
        if late is None:
            return False
        count_late(late, pod, self.groups.get(uid_of(pod)), boosts_count=self.settings.is_1_8_0)
        if late.outcome is None:
            self._say("Unanswered", key_of(pod), late.change)
            if late.change == "end of boost":
                self._expect(after(self.turn.now, _RETRY))
        return True

    def run(self) -> Dialogue:
        pods = self.pods
        if self.settings.gates.cpu_startup_boost and has_boost(self.vpa.spec):
            if self.settings.is_1_8_0:
                yield from self.unboost()
            for pod in pods:
                if is_boosted(pod):
                    self._say("Starting", key_of(pod))
            pods = [pod for pod in pods if not is_boosted(pod)]
        if self.mode in {OFF, INITIAL}:
            return
        if self.mode == IN_PLACE and not self.settings.gates.in_place:
            self._say("InPlaceGateOff")
            return
        evictions: list[Pod] = []
        if self.mode in _IN_PLACE_MODES:
            yield from self._resize_all(pods, evictions)
        else:
            evictions = self._in_order([pod for pod in pods if self._can_evict(pod)])
            self.counts.evictable = len(evictions)
        yield from self._evict_all(evictions)

    # ── evictions ──

    def _can_evict(self, pod: Pod) -> bool:
        why = self._why_not_evict(pod)
        if why:
            self._say(why, key_of(pod))
        return not why

    def _why_not_evict(self, pod: Pod) -> str:
        group = self.groups.get(uid_of(pod))
        if group is None:
            return "NoGroup"
        if pod.status.phase == "Pending":
            return ""
        if group.too_few:
            return "BelowMinReplicas"
        if resize_condition(pod) is not None:
            given = given_up(pod, group, self.state.memory, self.turn.now)
            return "" if given else "ResizeWaits"
        return "" if group.has_budget() else "NoBudget"

    def _evict_all(self, pods: Iterable[Pod]) -> Dialogue:
        for pod in with_capacity_first(pods, self.state):
            if not self._can_evict(pod) or not self._within_limits(pod) or self._waits_for_capacity(pod):
                continue
            due = self._due(pod, resize=False)
            outcome = yield Evict(key_of(pod), pod.metadata.uid, self.key, due)
            self.turn.now = outcome.at
            if outcome.error or outcome.pending:
                self.turn.refused.append(uid_of(pod))
            if outcome.error:
                self.counts.failed_evictions.append("EvictionError")
                self._say("EvictionFailed", key_of(pod), outcome.error)
            if outcome.error and not outcome.unknown:
                continue
            # What is withheld uses the budget too, so that advice is what one loop would do.
            if self.settings.limits_evictions:
                self.state.memory.recent.append((self.turn.now, pod.metadata.namespace))
            if pod.status.phase != "Pending":
                self.groups[uid_of(pod)].evicted += 1
            if outcome.pending:
                self._say("Unanswered", key_of(pod), "eviction")
            if outcome.withheld:
                self._say("EvictionAdvised", key_of(pod))
            if outcome.withheld or outcome.unknown:
                continue
            self._say("Evicted", key_of(pod))
            self.counts.evicted += 1
            self.turn.result.events += events.evicted(key_of(pod), self.key)

    def _within_limits(self, pod: Pod) -> bool:
        beyond = beyond_most(self.settings, self.state.memory, pod.metadata.namespace, self.turn.now)
        if beyond:
            self._say("EvictionsLimited", key_of(pod), beyond)
        return not beyond

    def _waits_for_capacity(self, pod: Pod) -> bool:
        """Return whether no node has the capacity for the pod's larger replacement; it uses the budget, as it goes next."""
        waits = self.state.replacement_waits
        replacement = None if waits is None else replacement_of(pod, self._recommendations)
        if waits is None or replacement is None:
            return False
        self.turn.replacements.append(replacement)
        why = waits.get(replacement.uid, NOT_LOOKED)
        if why:
            self._say("CapacityAwaited", key_of(pod), why)
            self.groups[uid_of(pod)].evicted += 1
        return bool(why)

    def _is_lower(self, candidate: Candidate) -> bool:
        """Return whether also what the pod would get is lower than what its node could not hold."""
        return is_worth_a_try(candidate.pod, capped_targets(candidate.capped), self.state.memory)

    def _is_open(self) -> bool:
        try:
            return is_open(self.vpa, self.settings, self.turn.now)
        except WindowsError as error:
            self._say("UpdateWindowsUnreadable", detail=str(error))
            return False

    def _due(self, pod: Pod, *, resize: bool) -> Instant:
        """Return when the rate limit lets the next action through, within the time of the loop. Raises: OutOfTime."""
        memory = self.state.memory
        limiter = memory.resizes if resize else memory.evictions
        settings = self.settings
        due = limiter.take(
            self.turn.now, settings.eviction_rate_limit, settings.eviction_rate_burst, self.turn.deadline
        )
        if due is None:
            self._say("RateLimited", key_of(pod))
            failed = self.counts.failed_resizes if resize else self.counts.failed_evictions
            failed.append("InPlaceUpdateRateLimiterWaitFailed" if resize else "EvictionRateLimiterWaitFailed")
            raise OutOfTime
        self.turn.served = self.key
        return due

    # ── resizes ──

    def _decide(self, pod: Pod) -> tuple[Decision, str]:
        return decide_in_place(
            pod,
            self.groups.get(uid_of(pod)),
            None if self._recommendations.targets(pod) is None else self._recommended,
            self.state.memory,
            self.turn.now,
            mode=self.mode,
            skip_budget=self.settings.in_place_skip_disruption_budget,
        )

    def _resize_all(self, pods: Sequence[Pod], evictions: list[Pod]) -> Dialogue:
        updatable = []
        for pod in pods:
            decision, why = self._decide(pod)
            if decision == "skipped":
                self._say(why, key_of(pod))
                self.counts.infeasible_skips += 1
                self.turn.result.events.append(events.resize_skipped(key_of(pod)))
                continue
            if decision == "deferred":
                self._say(why, key_of(pod))
                # Mode InPlace resizes these all the same: it disrupts nothing, upstream holds.
                if self.mode != IN_PLACE:
                    continue
            updatable.append(pod)
        ordered = self._in_order(updatable)
        self.counts.in_place_updatable = len(ordered)
        for pod in ordered:
            decision, why = self._decide(pod)
            if decision == "infeasible":
                self._say(why, key_of(pod))
                self._remember_infeasible(pod)
            elif self.mode == IN_PLACE_OR_RECREATE and decision != "approved":
                self._say(why, key_of(pod))
                if decision == "evict":
                    evictions.append(pod)
                continue
            if self.mode == IN_PLACE_OR_RECREATE and uid_of(pod) in self.turn.not_resized:
                evictions.append(pod)
            else:
                yield from self._resize(pod, evictions)

    def _resize(self, pod: Pod, evictions: list[Pod]) -> Dialogue:
        outcome = yield from self._ask_resize(pod, ends_boost=False)
        if not outcome.error:
            self._note_resize(pod, "Resized", outcome)
            return
        infeasible = outcome.node_capacity and self.mode == IN_PLACE
        self.turn.refused.append(uid_of(pod))
        self._say("ResizeFailed", key_of(pod), outcome.error)
        self.counts.failed_resizes.append("InPlaceUpdateInfeasible" if infeasible else "InPlaceUpdateError")
        if infeasible:
            self._remember_infeasible(pod)
        if outcome.unknown:
            self._note_resize(pod, "Resized", outcome)
        elif self.mode == IN_PLACE_OR_RECREATE:
            evictions.append(pod)

    def _ask_resize(self, pod: Pod, *, ends_boost: bool) -> Generator[Command, Outcome, Outcome]:
        """Resize a pod, and end its boosts whose time is up with it; an error if there is nothing to send."""
        due = self._due(pod, resize=True)
        # A boost may end while the resize waits for the rate limit.
        expired, _ = expired_boosts(pod, self.vpa.spec, due)
        error, patches = "", []
        try:
            recommended = tuple(self._recommendations.resources(pod).values())
            patches = resize_patches(pod, expired, recommended, is_off=self.mode == OFF)
        except (BoostError, QuantityError) as problem:
            error = str(problem)
        if self.groups.get(uid_of(pod)) is None:
            error = "the pod is of no group that may be updated"
        elif not patches:
            error = error or "no resource patches were calculated to apply"
        if error:
            outcome = Outcome(due, error)
        else:
            marks = [*empty_annotations(pod.metadata.annotations), *resize_marks(expired)]
            outcome = yield Resize(
                key_of(pod), pod.metadata.uid, self.key, due, patches, marks, ends_boost=ends_boost
            )
        self.turn.now = outcome.at
        return outcome

    def _note_resize(self, pod: Pod, code: str, outcome: Outcome) -> None:
        group = self.groups.get(uid_of(pod))
        # From 1.8.1 on each boost ends for itself: pods of one group do not wait for each other.
        if group is not None and (code != "Unboosted" or self.settings.is_1_8_0):
            group.resizing += 1
        if outcome.pending:
            self.turn.refused.append(uid_of(pod))
            self._say("Unanswered", key_of(pod), "resize" if code == "Resized" else "end of boost")
        if outcome.withheld:
            self._say("ResizeAdvised", key_of(pod))
        if outcome.withheld or outcome.unknown:
            return
        self._say(code, key_of(pod))
        self.counts.in_place_updated += 1
        self.turn.result.events.append(events.resized(key_of(pod)))

    def _remember_infeasible(self, pod: Pod) -> None:
        if self._recommended is not None:
            self.state.memory.infeasible[uid_of(pod)] = self._recommended

    # ── the end of a start-up boost ──

    def unboost(self) -> Dialogue:
        for pod in self.pods:
            if not is_boosted(pod):
                continue
            due_containers, wait = expired_boosts(pod, self.vpa.spec, self.turn.now)
            if wait is not None:
                self._expect(after(self.turn.now, wait))
            if not due_containers:
                continue
            why = self._why_not_unboost(pod)
            if why:
                self._say(why, key_of(pod))
                self._expect(after(self.turn.now, _RETRY))
                continue
            outcome = yield from self._ask_resize(pod, ends_boost=True)
            if outcome.error:
                self._unboost_failed(pod, outcome.error)
            elif not outcome.withheld:
                self._note_resize(pod, "Unboosted", outcome)
                if outcome.pending:
                    self._expect(after(self.turn.now, _RETRY))

    def _why_not_unboost(self, pod: Pod) -> str:
        group = self.groups.get(uid_of(pod))
        if pod.status.phase == "Pending":
            return "Pending"
        if resize_condition(pod) is not None:
            return "ResizeWaits"
        return "" if group is not None and group.has_budget() else "NoBudget"

    def _expect(self, at: Instant) -> None:
        known = self.turn.result.next_unboost
        self.turn.result.next_unboost = at if known is None else min(known, at)

    def _unboost_failed(self, pod: Pod, error: str) -> None:
        self._expect(after(self.turn.now, _RETRY))
        self._say("UnboostFailed", key_of(pod), error)
        self.counts.failed_resizes.append("UnboostError")

    # ── the queue ──

    def _in_order(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods that are to be updated, the most urgent first."""
        queue: list[tuple[Priority, Candidate]] = []
        is_open = self._is_open()
        for pod in pods:
            try:
                candidate = Candidate(pod, running_containers(pod), self._recommendations.targets(pod) or {})
            except QuantityError as error:
                self._say("BadRecommendation", key_of(pod), str(error))
                continue
            if self.mode == IN_PLACE and not self._is_lower(candidate):
                self._say("InfeasibleBefore", key_of(pod))
                continue
            priority = priority_of(candidate)
            quick_oom = has_quick_oom(pod, self.vpa.spec, self.settings, self.turn.now)
            if quick_oom:
                self._say("QuickOom", key_of(pod))
            elif not is_open:
                self._say("OutsideUpdateWindow", key_of(pod))
                continue
            why = why_not(pod, priority, self.settings, self.turn.now, quick_oom=quick_oom)
            self._say(why or "Queued", key_of(pod), "" if why else change_text(candidate))
            if not why:
                queue.append((priority, candidate))
        turns = self.state.memory.turns()
        queue.sort(key=lambda one: (turns.get(uid_of(one[1].pod), 0), one[0].order))
        allowed = []
        for _, candidate in queue:
            if meets_requirements(candidate, self.vpa.spec):
                allowed.append(candidate.pod)
            else:
                self._say(
                    "EvictionRequirementsNotMet", key_of(candidate.pod), requirements_text(self.vpa.spec)
                )
        return allowed
