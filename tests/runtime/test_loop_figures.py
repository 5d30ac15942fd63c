"""How the loops of a process on a cluster are, as figures beside their records."""

from __future__ import annotations

import asyncio
from itertools import count

from tests.horizontal.running import START
from tests.runtime.services import Nothing, service_of
from tests.tasks import stop

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import minutes


class Figures(Nothing):
    """Keeps the figures of each record."""

    def __init__(self):
        self.found = []

    def write(self, record, state=None):
        self.found.append({table.kind: (list(table.names), dict(table.columns)) for table in record.figures})


def test_each_record_says_how_the_loop_is():
    """How long the tick before took and how many failed; what is shared stands beside the records of one loop."""

    async def main(clock):
        requests = count(step=30)
        recorder = Figures()
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        service = service_of(clock, cluster, [], recorder=recorder, requests=lambda: next(requests))
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(2))
        await stop(task)
        return recorder.found

    first, *later = run_virtual(main, start=START)
    assert first["loop"] == (["horizontal"], {"seconds": (None,), "failures": (0,)})
    assert first["process"][1]["requests"] == (None,)
    assert later[-1]["loop"] == (["horizontal"], {"seconds": (0.0,), "failures": (0,)})
    # Thirty requests in each sync period of 15 s.
    assert later[-1]["process"][1]["requests"] == (2.0,)
    assert 0 <= later[-1]["process"][1]["cacheAge"][0] <= 120
