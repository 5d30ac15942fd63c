"""What goes wrong between the loops and the API server, as a scenario states it."""

from __future__ import annotations

from kubetide.embedded.store import EmbeddedCluster
from kubetide.embedded.store.request import Request
from kubetide.ports.clock import Clock
from kubetide.ports.errors import Unavailable
from kubetide.simulate.build import fault_end, fault_start, faults_of
from kubetide.simulate.scenario import Scenario
from kubetide.units.seeds import unit_interval
from kubetide.units.time import Duration, Instant, minutes

_EXPIRE_EVERY = minutes(1)


class ApiFaults:
    """Requests that the API server does not answer (``api-error``); drawn by the count of requests."""

    def __init__(self, windows: list[tuple[Instant, Instant | None, float]], clock: Clock, seed: int) -> None:
        self._windows = windows
        self._clock = clock
        self._seed = seed
        self._requests = 0

    @classmethod
    def of(cls, scenario: Scenario, clock: Clock, seed: int) -> ApiFaults | None:
        """The faults that a scenario states; None if it states none."""
        windows = [
            (fault_start(scenario, fault), fault_end(scenario, fault), fault.probability)
            for fault in faults_of(scenario, "api-error")
        ]
        return cls(windows, clock, seed) if windows else None

    async def before(self, request: Request) -> None:
        """Raises Unavailable for a request that is hit."""
        self._requests += 1
        now = self._clock.now()
        for start, end, probability in self._windows:
            hit = unit_interval(self._seed, "api-error", self._requests) < probability
            if start <= now and (end is None or now < end) and hit:
                raise Unavailable(
                    f"the server is currently unable to handle the request ({request.verb} {request.kind.plural})"
                )


async def run_watch_expiries(scenario: Scenario, cluster: EmbeddedCluster, clock: Clock) -> None:
    """Ends all watches as expired, once a minute while a ``watch-expiry`` fault lasts."""
    for fault in sorted(faults_of(scenario, "watch-expiry"), key=lambda fault: fault_start(scenario, fault)):
        end = fault_end(scenario, fault)
        due = fault_start(scenario, fault)
        while True:
            await clock.sleep(Duration(due - clock.now()))
            cluster.expire_watches()
            due = Instant(due + _EXPIRE_EVERY)
            if end is None or due >= end:
                break
