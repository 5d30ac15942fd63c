"""A thousand groups of fifteen nodes: what a refresh costs."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from urllib.parse import urlsplit

import pytest
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.fakes.gce import PROJECT, ZONE, FakeGce
from tests.clouds.fakes.server import Asked

from kubetide.clouds.common.rest import Response, Rest
from kubetide.clouds.gce.api import ComputeApi, refusal
from kubetide.clouds.gce.cloud import GceCloud
from kubetide.clouds.gce.settings import GceSettings, parse_discoveries
from kubetide.units.time import minutes

pytestmark = pytest.mark.slow
GROUPS, NODES = 1000, 15


class Answers:
    """The server's answers, each made once, so that only the provider's own time is measured."""

    def __init__(self, gce):
        self.gce, self.made, self.calls = gce, {}, Counter()

    async def __call__(self, request):
        key = (request.method, request.url, tuple(sorted(request.query.items())))
        self.calls[urlsplit(request.url).path.rpartition("/")[2]] += 1
        if key not in self.made:
            headers = {name.lower(): value for name, value in request.headers.items()}
            asked = Asked(request.method, urlsplit(request.url).path, dict(request.query), headers, None)
            self.made[key] = json.dumps(self.gce(asked).body).encode()
        return Response(200, {}, self.made[key])


@pytest.mark.parametrize("bulk", [False, True], ids=["by group", "in bulk"])
def test_a_refresh_of_many_groups(bulk):
    """It takes less than 2 s of CPU time; calls grow with groups, or in bulk with pages, never with nodes."""
    clock = Clock()
    fleet = Fleet(clock)
    for number in range(GROUPS):
        fleet.add(f"g{number:04}", running=NODES)
    answers = Answers(FakeGce(fleet, page=500))

    async def token():
        return "a-token"

    async def main():
        api = ComputeApi(Rest(answers, clock, refusal), clock, token, PROJECT)
        discovery = parse_discoveries(("mig:namePrefix=g,max=20",))
        settings = GceSettings(project=PROJECT, location=ZONE, discovery=discovery, bulk_listing=bulk)
        cloud = GceCloud(api, settings, clock)
        await cloud.refresh()
        await clock.sleep(minutes(1))
        await cloud.refresh()
        await clock.sleep(minutes(1))
        answers.calls.clear()
        start = time.process_time()
        groups = await cloud.refresh()
        assert time.process_time() - start < 2
        assert [len(group.instances) for group in groups] == [NODES] * GROUPS

    asyncio.run(main())
    lists = {"instances": GROUPS * NODES // 500} if bulk else {"listManagedInstances": GROUPS}
    assert answers.calls == {"instanceGroups": 2, "instanceGroupManagers": 2, **lists}
