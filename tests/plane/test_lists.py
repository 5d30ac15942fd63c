"""A real API server streams its lists, and what came by pages is the same."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders

pytestmark = pytest.mark.slow


def test_a_streaming_list(quiet_plane):
    """The first part of the stream is what a list gives; the next is what happened since."""

    async def run(clock):
        async with HttpCluster(quiet_plane.connection, clock) as client:
            for index in range(600):
                body = builders.config_map(f"c{index:03}", labels={"list": "long"})
                await client.create(CONFIG_MAPS, body, namespace="default")
            where = {"namespace": "default", "labels": "list=long"}
            async with aclosing(client.list_and_watch(CONFIG_MAPS, **where)) as parts:
                streamed = await anext(parts)
                paged = await client.list(CONFIG_MAPS, **where)
                assert len(paged.items) == 600
                assert streamed.items == paged.items
                await client.delete(CONFIG_MAPS, "c000", namespace="default")
                changes = [one for one in await anext(parts) if one.type != "BOOKMARK"]
                assert [(one.type, one.name) for one in changes] == [("DELETED", "c000")]
            assert not client._reader._in_pages

    run_real(run)
