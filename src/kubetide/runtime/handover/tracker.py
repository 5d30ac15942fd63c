"""Tracks by watches which HPAs another controller serves, and reports each change once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.runtime.handover.ownership import (
    ANNOTATION,
    CLUSTER_WIDE,
    MANAGED_HPAS,
    OWN,
    UNCLAIMED,
    ManagedHpa,
    ScaleView,
    State,
    Target,
    Verdict,
    View,
    Write,
    verdict_of,
    view_of,
)
from kubetide.runtime.handover.scales import ScaleWatch
from kubetide.units.time import Duration, Instant, format_duration, format_rfc3339, seconds, to_seconds
from kubetide.watching import Informer

_LOOK = seconds(5)
"""How often time alone is looked at: HPAs that nobody has claimed for long enough."""

_UNWRITTEN = (State.BLOCKED, State.UNCLAIMED)

_MOST_SENTENCES, _FIRST = 10, 3
"""So many HPAs of which the same is new are named one by one; of more only the first."""
_HELP = "`kubetide handover` shows who serves which HPA, and moves them"


class HpaOwners:
    """Which HPAs other controllers serve; see ``ownership`` for the rules.

    An HPA that another controller writes to while it is ours is given up at once, and stays given up in this process
    until it is handed over anew, whatever the times of the writes are.

    Args:
        tell: Takes a sentence for each HPA that begins or ceases to be left alone.
        own: The manager that this process's writes are noted under.
        server_now: Returns the time by the API server's clock, which stamps what is written; by default ours.
        adopt_after: How long an HPA without a status is watched before it is taken on.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        tell: Callable[[str], None],
        *,
        own: str = OWN,
        server_now: Callable[[], Instant] | None = None,
        adopt_after: Duration = UNCLAIMED,
    ) -> None:
        self._clock = clock
        self._tell = tell
        self._own = own
        self._adopt_after = adopt_after
        self._server_now = server_now or clock.now
        self._views: dict[Key, View] = {}
        self._scales: dict[Target, ScaleView] = {}
        self._by_target: dict[Target, set[Key]] = {}
        self._verdicts: dict[Key, Verdict] = {}
        self._left: dict[Key, Verdict] = {}
        self._begun: dict[Key, Duration] = {}
        self._served: set[Key] = set()
        """HPAs whose status another controller has written, and which are not ours."""
        self._waiting: set[Key] = set()
        """HPAs without a status that are not ours yet."""
        self._given_up: dict[Key, tuple[Write, Instant | None]] = {}
        """By whom, and the consent that it ended; seconds are too coarse to show which of two writes came later."""
        self._cluster_wide: Write | None = None
        self._dirty: set[Key] = set()
        self._changed = asyncio.Event()
        self._told: dict[Key, tuple[State, str, str]] = {}
        self._helped = False
        self._failed: dict[str, str] = {}
        self._hpas = Informer(cluster, MANAGED_HPAS, clock, keep=lambda hpa: view_of(hpa, own))
        self._hpas.on_change(self._hpa_changed)
        self._targets = ScaleWatch(cluster, clock, own, self._scale_changed)

    # ── what the loop asks ──

    def left_alone(self) -> Collection[Key]:
        """Return the HPAs that must not be changed now."""
        self._look()
        return self._left.keys()

    def why(self, key: Key) -> str:
        """Return why an HPA of ``left_alone`` is left alone, without times; empty for any other."""
        return _why(verdict) if (verdict := self._left.get(key)) else ""

    def knows(self, key: Key) -> bool:
        """Return whether the watch has seen an HPA: unseen ones must not be changed, either."""
        return key in self._views

    @property
    def verdicts(self) -> dict[Key, Verdict]:
        """Who serves each HPA."""
        self._look()
        return self._verdicts

    # ── running ──

    async def known(self) -> None:
        """Return once all HPAs and their targets have been seen."""
        await self._hpas.synced()
        await self._targets.answered()
        self._look()
        self._say()

    async def run(self) -> None:
        """Watch, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._hpas.run())
            tasks.create_task(self._targets.run())
            tasks.create_task(self._speak())

    async def _speak(self) -> None:
        while True:
            try:
                async with asyncio.timeout(to_seconds(_LOOK)):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            self._say_failures()
            if self._hpas.has_synced and self._targets.has_synced:
                self._look()
                self._say()

    # ── what the watch brings ──

    def _hpa_changed(self, key: Key, _old: Any, new: Any) -> None:
        before = self._views.pop(key, None)
        if before is not None:
            self._by_target.get(before.target, set()).discard(key)
        if new is None:
            self._forget(key)
            return
        # A cluster of the same process gives whole objects.
        view = view_of(new, self._own) if isinstance(new, ManagedHpa) else new
        self._views[key] = view
        self._by_target.setdefault(view.target, set()).add(key)
        self._targets.want(view.target[:2])
        self._begun.setdefault(key, self._clock.monotonic())
        self._notice(key, before.foreign if before else view.foreign, view.foreign)
        if before is None or before._replace(own=view.own) != view or view.own is None:
            self._dirty.add(key)
            self._changed.set()
        for write in view.foreign:
            if write.manager == CLUSTER_WIDE and (self._cluster_wide is None or write > self._cluster_wide):
                self._cluster_wide = write
                self._dirty.update(self._views)
                self._changed.set()

    def _scale_changed(self, target: Target, view: ScaleView | None, synced: bool) -> None:
        before = self._scales.pop(target, None)
        if view is None:
            return
        self._scales[target] = view
        if before == view or not synced:
            return
        # A manager that is still there after the number has changed has changed it.
        written = tuple(one._replace(at=self._server_now()) for one in view.foreign)
        for hpa in self._by_target.get(target, ()):
            self._notice(hpa, (), written)
            self._dirty.add(hpa)
            self._changed.set()

    def _notice(self, key: Key, before: tuple[Write, ...], after: tuple[Write, ...]) -> None:
        """Give an HPA up that is ours and to which another controller has just written."""
        verdict = self._verdicts.get(key)
        if verdict is None or verdict.state is not State.OURS:
            return
        for write in after:
            consent = self._views[key].consent.at
            if write not in before and not (consent is not None and write.at < consent):
                self._given_up[key] = write, consent
                self._dirty.add(key)

    def _forget(self, key: Key) -> None:
        for table in (self._verdicts, self._left, self._begun, self._given_up):
            table.pop(key, None)
        for keys in (self._served, self._waiting, self._dirty):
            keys.discard(key)
        self._told.pop(key, None)

    # ── who serves what ──

    def _look(self) -> None:
        """Evaluate anew what has changed, and what waits."""
        if not (self._dirty or self._waiting):
            return
        others = bool(self._served)
        self._evaluate(self._dirty & self._views.keys())
        self._dirty.clear()
        if others != bool(self._served):
            # Whether an HPA without a status may be adopted depends on whether others serve any at all.
            self._waiting.update(key for key, view in self._views.items() if view.own is None)
        self._evaluate(self._waiting)

    def _evaluate(self, keys: Collection[Key]) -> None:
        now, elapsed = self._server_now(), self._clock.monotonic()
        for key in list(keys):
            verdict = self._verdict(key, now, elapsed)
            self._verdicts[key] = verdict
            (self._served.add if verdict.state is State.THEIRS else self._served.discard)(key)
            (self._waiting.add if verdict.state in _UNWRITTEN else self._waiting.discard)(key)
            if verdict.state is State.OURS:
                self._left.pop(key, None)
            else:
                self._left[key] = verdict

    def _verdict(self, key: Key, now: Instant, elapsed: Duration) -> Verdict:
        view = self._views[key]
        verdict = verdict_of(
            view,
            now=now,
            scale=self._scales.get(view.target),
            cluster_wide=self._cluster_wide,
            served_by_others=len(self._served) - (key in self._served),
            unclaimed=Duration(elapsed - self._begun[key]),
            adopt_after=self._adopt_after,
        )
        given_up = self._given_up.get(key)
        if given_up is None:
            return verdict
        write, consent = given_up
        if consent != view.consent.at or view.consent.others:
            del self._given_up[key]
            return verdict
        return Verdict(State.THEIRS, write, ended=True)

    # ── what is said ──

    def _say_failures(self) -> None:
        hpas = {self._hpas.kind.resource: self._hpas.last_error if self._hpas.failures else ""}
        for what, problem in (hpas | self._targets.problems).items():
            if problem != self._failed.get(what, ""):
                self._failed[what] = problem
                if problem:
                    self._tell(f"cannot see who else writes to {what}: {problem}")

    def _say(self) -> None:
        """Tell what has changed; where the same holds for many HPAs, of a few of them and how many more there are."""
        changed: dict[tuple[State, str, str], list[str]] = {}
        for key in sorted(self._verdicts):
            verdict, view = self._verdicts[key], self._views[key]
            saying = (verdict.state, verdict.by.manager if verdict.by else "", view.consent.wrong)
            before = self._told.get(key)
            if saying == before:
                continue
            self._told[key] = saying
            text = _sentence(verdict, view, self._adopt_after)
            if verdict.state is State.OURS:
                if before is None:
                    continue
                text = "is served from now on"
            changed.setdefault(saying, []).append(f"HPA {'/'.join(key)} {text}")
        for (state, _, _), sentences in changed.items():
            shown = sentences if len(sentences) <= _MOST_SENTENCES else sentences[:_FIRST]
            for sentence in shown:
                self._tell(sentence)
            if more := len(sentences) - len(shown):
                self._tell(f"the same holds for {more} more HPAs; `kubetide handover` shows them")
            if not self._helped and state is not State.UNCLAIMED:
                self._helped = True
                self._tell(_HELP)


def _why(verdict: Verdict, *, with_time: bool = False) -> str:
    """Return why an HPA is left alone, with the time of the write that shows it or without; empty for one that is ours."""
    by = verdict.by.manager if verdict.by else "another controller"
    at = f" ({format_rfc3339(verdict.by.at)})" if verdict.by and with_time else ""
    match verdict.state:
        case State.THEIRS if verdict.ended:
            return f"{by} has written a status or a scale{at} after it was taken on"
        case State.THEIRS:
            return f"{by} writes its status" + (f", the last time{at}" if at else "")
        case State.RELEASED:
            return f"{ANNOTATION} gives it to others"
        case State.BLOCKED:
            return f"it has no status yet, and {by} serves other HPAs of the cluster"
        case State.UNCLAIMED:
            return "it has no status yet, and another controller may be about to write one"
        case State.OURS:
            return ""


def _sentence(verdict: Verdict, view: View, adopt_after: Duration) -> str:
    why = _why(verdict, with_time=True)
    match verdict.state:
        case State.THEIRS if verdict.ended:
            return f"is given up: {why}"
        case State.THEIRS:
            wrong = f"; {ANNOTATION}: {view.consent.wrong!r} cannot be read" if view.consent.wrong else ""
            return f"is left alone: {why}{wrong}"
        case State.RELEASED | State.BLOCKED:
            return f"is left alone: {why}"
        case State.UNCLAIMED:
            return f"has no status yet: it is taken on in {format_duration(adopt_after)} unless somebody writes one"
        case State.OURS:
            return "is ours"
