"""Services of a run in virtual time."""

from __future__ import annotations

from tests.horizontal.running import Usage
from tests.nodes.live import FREE

from kubetide.loop import Sources
from kubetide.runtime.configuration.config import make_config
from kubetide.runtime.service import Service
from kubetide.units.exposition import Registry


class Nothing:
    def wants_full(self, loop):
        return False

    def write(self, record):
        pass


def service_of(
    clock, cluster, said, usage=None, guard=FREE, cloud=None, recorder=None, requests=None, **flags
):
    return Service(
        make_config([("--", flags)] if flags else []),
        cluster,
        clock,
        sources=Sources(usage or Usage(cluster, clock, 100)),
        cloud=cloud,
        guard=guard,
        recorder=recorder or Nothing(),
        requests=requests,
        registry=Registry(),
        warn=said.append,
        seed=1,
    )
