"""Leader election on a Lease, so that one process acts at a time, among ours and upstream's programs.

Source: client-go v1.36 (tools/leaderelection and its Lease lock). Stricter than upstream in two things: the
renew deadline counts from when the last renewal was *sent*, and whoever sees another holder gives up at once.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from kubetide.acting.events import EventWriter
from kubetide.acting.lease import JITTER, LeaseTimes, Seen, claim, is_held, release, seen_again
from kubetide.objects.base import Json
from kubetide.objects.cluster import LeaseSpec, ObjectReference
from kubetide.objects.kinds import LEASES
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, Conflict, KubetideError, NotFound
from kubetide.units.seeds import unit_interval
from kubetide.units.time import Duration, to_seconds

_LEASES: Final = LEASES.untyped


class LeaseLost(KubetideError):
    """The lease could not be renewed in time, or has another holder: its former holder must stop acting."""


class Fence:
    """Whether this process still leads, by its own clock alone: it ends before another process can lead."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._until: Duration | None = None

    def still_leading(self) -> bool:
        """Return whether the last renewal was sent less than the renew deadline ago."""
        return self.left() > 0

    def refusal(self) -> str:
        """Return why nothing may be changed now; empty while this process leads."""
        return "" if self.still_leading() else f"this process does not hold the lease {self._name}"

    def left(self) -> Duration:
        """Return how long this process may lead without a renewal."""
        return Duration(0 if self._until is None else max(self._until - self._clock.monotonic(), 0))

    def extend(self, until: Duration) -> None:
        """Allow changes until then, in elapsed time."""
        self._until = until

    def shut(self) -> None:
        """Allow no more changes."""
        self._until = None


class Elector:
    """Acquires and renews a Lease.

    Args:
        cluster: Where the Lease is. Not one whose writes ask this elector's fence, and better not one
            whose rate limit others use up.
        clock: Time.
        namespace: Of the Lease.
        name: Of the Lease; upstream's own where both must not act at once.
        identity: Who this is; no two processes may have the same.
        component: The source of its events.
        times: Of the election.
        seed: Of the jitter of pauses.
        after: Of the lease that must be held first: until then this one is only watched. Processes that
            need several leases take them in one order, so that no two hold one each for ever.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        namespace: str,
        name: str,
        identity: str,
        component: str,
        times: LeaseTimes | None = None,
        seed: int = 0,
        after: Fence | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._times = times or LeaseTimes()
        self._seed = seed
        self._after = after
        self._events = EventWriter(cluster, clock, component)
        self._seen: Seen | None = None
        self._lease: Json = {}
        self._tries = 0
        self._leading = asyncio.Event()
        self.fence = Fence(clock, f"{namespace}/{name}")
        self.last_error = ""
        """Why the last try failed; empty when it did not."""

    @property
    def holder(self) -> str:
        """The last known holder of the Lease, empty for none."""
        return "" if self._seen is None else self._seen.holder

    async def leading(self) -> None:
        """Return once this process has become the leader."""
        await self._leading.wait()

    async def run(self) -> None:
        """Acquire the Lease, renew it until cancelled, and then release it.

        All that acts by the Lease must have ended before this is cancelled. Raises LeaseLost; start no
        second run then: upstream's programs end, and so must what acted.
        """
        try:
            await self._acquire()
            self._leading.set()
            await self._announce("became leader")
            await self._keep()
        except LeaseLost:
            # Not let go of: what acted by it may not have ended yet, and others wait until it has run out.
            self.fence.shut()
            await self._announce("stopped leading")
            raise
        except asyncio.CancelledError:
            self.fence.shut()
            await self._let_go()
            raise

    async def _acquire(self) -> None:
        while not await self._try_once(self._times.renew_deadline):
            self._tries += 1
            draw = unit_interval(self._seed, "election", self._identity, self._tries)
            await self._clock.sleep(Duration(round(self._times.retry_period * (1 + JITTER * draw))))

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(self._times.retry_period)
            if self.fence.still_leading():
                await self._try_once(self.fence.left())
            if self.holder != self._identity:
                raise LeaseLost(f"lease {self._namespace}/{self._name} is held by {self.holder or 'nobody'}")
            if not self.fence.still_leading():
                why = self.last_error or "it was not renewed in time"
                raise LeaseLost(f"lease {self._namespace}/{self._name} was lost: {why}")

    async def _try_once(self, patience: Duration) -> bool:
        """Take or renews the Lease if it is to be had, within that time or what is left of leading; whether it was."""
        sent = self._clock.monotonic()
        self.last_error = ""
        try:
            async with asyncio.timeout(to_seconds(patience)):
                held = await self._take_or_renew()
        except (ApiError, TimeoutError) as error:
            self.last_error = _text_of(error)
            return False
        # A renewal that came back too late does not open the fence again: others may have seen it shut.
        if held and (not self._leading.is_set() or self.fence.still_leading()):
            self.fence.extend(Duration(sent + self._times.renew_deadline))
            self.last_error = ""
        return held

    async def _take_or_renew(self) -> bool:
        if (
            self._seen is not None
            and self._seen.holder == self._identity
            and await self._write_over(self._seen)
        ):
            return True  # as the leader, without reading first
        try:
            lease = await self._read()
        except NotFound:
            if not self._may_take():
                return False
            spec = claim(self._identity, None, self._times, self._clock.now())
            body: Json = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": spec}
            self._take_in(await self._cluster.create(_LEASES, body, namespace=self._namespace))
            return True
        self._take_in(lease)
        assert self._seen is not None
        others = self.holder not in {"", self._identity}
        if others and (self._leading.is_set() or is_held(self._seen, self._clock.monotonic(), self._times)):
            return False
        return self._may_take() and await self._write_over(self._seen)

    def _may_take(self) -> bool:
        return self._leading.is_set() or self._after is None or self._after.still_leading()

    async def _write_over(self, seen: Seen) -> bool:
        """Claim the Lease if it is still as it was seen; whether it was."""
        spec = claim(self._identity, seen, self._times, self._clock.now())
        try:
            self._take_in(await self._replace(spec))
        except (Conflict, NotFound) as error:
            self.last_error = str(error)
            return False
        return True

    async def _read(self) -> Json:
        return await self._cluster.get(_LEASES, self._name, namespace=self._namespace)

    async def _replace(self, spec: Json) -> Json:
        """Write over the Lease as it was last seen; what others keep in it stays. Raises Conflict, NotFound."""
        lease = {**self._lease, "spec": {**(self._lease.get("spec") or {}), **spec}}
        return await self._cluster.replace(_LEASES, lease, namespace=self._namespace)

    def _take_in(self, lease: Json) -> None:
        self._lease = lease
        spec = msgspec.convert(lease.get("spec") or {}, LeaseSpec)
        self._seen = seen_again(self._seen, spec, self._clock.monotonic())

    async def _let_go(self) -> None:
        """Give the Lease back, if it is this process's; one that cannot be given back runs out by itself.

        A renewal that was cancelled may have been written all the same: then the Lease is read, and given back as it is.
        Source: client-go v1.36, which tries for a renew deadline.
        """
        try:
            async with asyncio.timeout(to_seconds(self._times.renew_deadline)):
                while self._seen is not None and self._seen.holder == self._identity:
                    try:
                        self._take_in(await self._replace(release(self._seen, self._clock.now())))
                    except Conflict:
                        self._take_in(await self._read())
        except (ApiError, TimeoutError) as error:
            self.last_error = _text_of(error)

    async def _announce(self, what: str) -> None:
        about = ObjectReference(
            api_version=LEASES.api_version, kind=LEASES.kind, namespace=self._namespace, name=self._name
        )
        try:
            async with asyncio.timeout(to_seconds(self._times.retry_period)):
                await self._events.emit(about, "Normal", "LeaderElection", f"{self._identity} {what}")
        except TimeoutError:
            pass  # an event is never worth a lease


def _text_of(error: BaseException) -> str:
    """Return what went wrong; of a request that was given up in a pause before its repeat, also the last answer."""
    if isinstance(error, ApiError):
        return str(error)
    cause = error.__cause__
    while cause is not None and not isinstance(cause, ApiError):
        cause = cause.__cause__
    return "no answer in time" if cause is None else f"no answer in time; the last one was: {cause}"
