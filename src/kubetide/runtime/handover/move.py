"""``kubetide handover``: who serves which HPA, and moving HPAs from one controller to the other without a gap."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from kubetide.objects.kinds import HPAS, LEASES
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, KubetideError, NotFound
from kubetide.runtime.handover.ownership import (
    ANNOTATION,
    MANAGED_HPAS,
    OTHERS,
    OWN,
    State,
    Verdict,
    View,
    Write,
    consent_text,
    is_own,
    verdicts_of,
    view_of,
)
from kubetide.runtime.handover.probe import probe
from kubetide.runtime.handover.scales import scale_views
from kubetide.units.lists import listed
from kubetide.units.time import (
    Duration,
    Instant,
    TimeFormatError,
    format_duration,
    format_rfc3339,
    parse_rfc3339,
    seconds,
)

LEASE = "kubetide"
PROGRAM = "kubetide-handover"
"""The manager that the command's writes are noted under."""

_PROBES = 3
"""HPAs of each controller that are asked about."""

_SHOWN = 3
_LOOK = seconds(1)
_GRACE = seconds(5)


class HandoverError(KubetideError):
    """HPAs that cannot be moved now; the text gives the reason and the fix."""


class Row(NamedTuple):
    """One HPA and its controller."""

    hpa: str
    served_by: str
    since: str
    note: str


class Handover:
    """Shows and moves the HPAs of a cluster.

    Args:
        cluster: A client whose writes are noted under ``PROGRAM``.
        server_now: Returns the time by the API server's clock.
        tell: Takes a sentence about what goes on.
        namespace: Where the Lease of ``kubetide run --act`` is.
        sync_period: Of the controllers; two of them are waited for an answer.
        own: The manager that writes of this program are noted under.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        tell: Callable[[str], None],
        *,
        server_now: Callable[[], Instant],
        namespace: str,
        sync_period: Duration,
        own: str = OWN,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._tell = tell
        self._server_now = server_now
        self._namespace = namespace
        self._period = sync_period
        self._own = own

    async def rows(self, names: Collection[str] = (), *, asks: bool) -> list[Row]:
        """Return who serves each HPA; with ``asks`` probes whether their controllers are running.

        Args:
            names: ``NAMESPACE/NAME`` of each; empty for all.

        Raises: HandoverError, ApiError.
        """
        views, verdicts = await self._look()
        chosen = sorted(_chosen(views, names))
        acting = await self._acting()
        alive = await self._ask(views, {key: verdicts[key] for key in chosen}) if asks else None
        return [Row("/".join(key), *_cells(verdicts[key], views[key], acting, alive)) for key in chosen]

    async def to_kubetide(self, names: Collection[str], *, wait: Duration, force: bool) -> None:
        """Hand HPAs over to the acting run, once no other controller serves them.

        Args:
            names: ``NAMESPACE/NAME`` of each; empty for all.
            wait: How long to go on asking while another controller is there.
            force: Whether to move them without asking, and though nobody acts.

        Raises: HandoverError, ApiError.
        """
        if not force and not await self._acting():
            raise HandoverError(
                f"no `kubetide run --act` holds the Lease {self._namespace}/{LEASE}, so the HPAs would be served by "
                "nobody; start it first (it leaves them alone until they are handed over), or say --force"
            )
        deadline = self._clock.monotonic() + wait
        while True:
            views, verdicts = await self._look()
            chosen = _chosen(views, names)
            theirs = {key: verdicts[key] for key in chosen if verdicts[key].state is not State.OURS}
            if not theirs:
                self._tell(f"nothing to move: all {len(chosen)} HPAs are kubetide's")
                return
            alive = {} if force else await self._ask(views, theirs)
            if not alive:
                break
            said = "; ".join(
                f"{manager} serves them: it put {'/'.join(key)} right within {format_duration(self._patience)}"
                for manager, key in sorted(alive.items())
            )
            if self._clock.monotonic() >= deadline:
                raise HandoverError(
                    f"{said}; switch it off first (kube-controller-manager "
                    "--controllers=*,-horizontal-pod-autoscaler-controller), or say --wait=10m before you do, "
                    "and they are moved as soon as it is gone"
                )
            self._tell(f"{said}; waiting for it to go")
        value = consent_text(self._server_now())
        await self._annotate(list(theirs), value)
        self._tell(f"{len(theirs)} HPAs are handed over to kubetide: {_named(theirs)}")

    async def to_others(self, names: Collection[str], *, wait: Duration) -> None:
        """Release HPAs: at once, or with a ``wait`` once another controller serves one of them.

        Raises: HandoverError when no other controller comes in time, ApiError.
        """
        views, _ = await self._look()
        chosen = _chosen(views, names)
        if wait:
            await self._await_others(views, chosen, wait)
        await self._annotate([key for key in chosen if not views[key].consent.others], OTHERS)
        self._tell(f"{len(chosen)} HPAs are given to others: {_named(chosen)}")

    async def _await_others(self, views: Mapping[Key, View], chosen: Sequence[Key], wait: Duration) -> None:
        known = {key: set(views[key].foreign) for key in chosen}
        deadline = self._clock.monotonic() + wait
        self._tell("kubetide goes on until another controller writes to one of them; switch that on now")
        while self._clock.monotonic() < deadline:
            views, _ = await self._look()
            for key in chosen:
                new = set(views[key].foreign) - known[key] if key in views else set[Write]()
                if new:
                    self._tell(f"{max(new).manager} serves {'/'.join(key)}")
                    return
            # A controller to which nothing looks wrong writes nothing: so something is made to look wrong.
            await probe(self._cluster, self._clock, chosen[:_PROBES], self._patience)
        raise HandoverError(
            f"no other controller has come within {format_duration(wait)}; kubetide goes on. Switch the other on "
            "first, or leave --wait out to let go at once"
        )

    # ── looking ──

    @property
    def _patience(self) -> Duration:
        return Duration(2 * self._period)

    async def _look(self) -> tuple[dict[Key, View], dict[Key, Verdict]]:
        hpas = await self._cluster.list(MANAGED_HPAS)
        views = {(one.metadata.namespace, one.metadata.name): view_of(one, self._own) for one in hpas.items}
        scales = await scale_views(self._cluster, {view.target[:2] for view in views.values()}, self._own)
        return views, verdicts_of(views, scales, self._server_now())

    async def _acting(self) -> str:
        """Return who holds the Lease and has renewed it of late; empty for nobody."""
        try:
            lease = (await self._cluster.get(LEASES, LEASE, namespace=self._namespace)).spec
            renewed = parse_rfc3339(lease.renew_time or "")
        except (NotFound, TimeFormatError):
            return ""
        lasts = seconds(lease.lease_duration_seconds or 0) + _GRACE
        return (lease.holder_identity or "") if self._server_now() <= renewed + lasts else ""

    async def _ask(self, views: Mapping[Key, View], verdicts: Mapping[Key, Verdict]) -> dict[str, Key]:
        """Return the controllers that answer for HPAs which are not ours, each with one HPA that it put right."""
        by_manager: dict[str, list[Key]] = {}
        for key in sorted(verdicts):
            verdict = verdicts[key]
            if verdict.state in {State.THEIRS, State.RELEASED}:
                newest = views[key].newest or verdict.by
                by_manager.setdefault(newest.manager if newest else "", []).append(key)
        asked = [key for keys in by_manager.values() for key in keys[:_PROBES]]
        if asked:
            self._tell(f"asking who serves {_named(asked)} (up to {format_duration(self._patience)})")
        answers = await probe(self._cluster, self._clock, asked, self._patience)
        return {manager: key for key, manager in answers.items() if not is_own(manager, self._own)}

    async def _annotate(self, keys: Sequence[Key], value: str) -> None:
        failed: dict[Key, ApiError] = {}
        for key in keys:
            patch = {"metadata": {"annotations": {ANNOTATION: value}}}
            try:
                await self._cluster.patch(HPAS, key[1], patch, namespace=key[0])
            except NotFound:
                continue
            except ApiError as error:
                failed[key] = error
        if failed:
            first = next(iter(failed.values()))
            raise HandoverError(
                f"{len(failed)} of {len(keys)} HPAs could not be moved: {_named(failed)}: {first}"
            )


def _chosen(views: Mapping[Key, View], names: Collection[str]) -> list[Key]:
    """Return the HPAs of these names, all where none is named. Raises: HandoverError for one that is not there."""
    by_name = {"/".join(key): key for key in sorted(views)}
    if missing := [name for name in names if name not in by_name]:
        raise HandoverError(
            f"there is no HPA {missing[0]!r}; name them as NAMESPACE/NAME, or leave them out for all {len(views)}"
        )
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(by_name.values())


def _named(keys: Collection[Key]) -> str:
    return listed(["/".join(key) for key in sorted(keys)], _SHOWN)


def _cells(
    verdict: Verdict, view: View, acting: str, alive: Mapping[str, Key] | None
) -> tuple[str, str, str]:
    """Return who serves an HPA, the last write that says so, and what else there is to know."""
    write = verdict.by
    if verdict.state is State.OURS:
        since = format_rfc3339(view.own) if view.own is not None else ""
        return ("kubetide", since, "") if acting else ("nobody", since, "kubetide's, but no run acts")
    if verdict.state in {State.THEIRS, State.RELEASED}:
        name = write.manager if write else "others"
        since = format_rfc3339(write.at) if write else ""
        if alive is None:
            note = "whether it runs is not known; --probe asks"
        else:
            note = "it runs" if name in alive else "it does not answer"
        if alive is not None and name not in alive:
            name = "nobody"
        return name, since, f"given to others; {note}" if verdict.state is State.RELEASED else note
    return "nobody", "", "no status yet, or one without a recorded writer"
