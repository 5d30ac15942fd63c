"""What a service tells people of its HPAs: metrics that fail for a while, and HPAs about which nothing is decided."""

from __future__ import annotations

import asyncio

import pytest
from tests.horizontal.running import START, World
from tests.runtime.services import service_of
from tests.tasks import stop

from kubetide.objects.kinds import HPAS
from kubetide.ports.errors import MetricsError
from kubetide.runtime.guard import Advice
from kubetide.runtime.timing.clock import run_virtual
from kubetide.runtime.undecided_hpas import UndecidedHpas
from kubetide.testing.builders import hpa
from kubetide.units.time import Instant, minutes


@pytest.mark.parametrize("hangs", [False, True])
def test_metrics_that_fail_for_a_while_are_reported_once_with_since_when(hangs):
    """Two minutes without an answer are one line and its end, also where the run only advises."""

    async def main(clock):
        world, said = World(clock), []
        await world.add(replicas=2)
        usage = world.usage
        answer = usage.pod_samples
        service = service_of(clock, world.cluster, said, usage, guard=Advice())
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(1))
        assert said == []

        async def broken(*asked):
            if hangs:
                await asyncio.Event().wait()
            raise MetricsError("the server is currently unable to handle the request")

        usage.pod_samples = broken
        await clock.sleep(minutes(2))
        usage.pod_samples = answer
        await clock.sleep(minutes(2))
        await stop(task)
        return said

    reported, end = run_virtual(main, start=START)
    assert reported.startswith("no resource metrics since 2026-03-02T08:01:")
    assert ("did not answer within 10s" if hangs else "currently unable to handle the request") in reported
    assert end == "resource metrics can be read again"


def test_hpas_about_which_nothing_is_decided_are_named_once():
    """Also where the run only advises, and writes no condition; one whose pods have just come is not worth a line."""

    async def main(clock):
        world, said = World(clock), []
        await world.add(replicas=2)
        await world.cluster.create(HPAS, hpa("lost", "gone"), namespace="default")
        service = service_of(clock, world.cluster, said, world.usage, guard=Advice())
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(1))
        assert said == []
        await clock.sleep(minutes(9))
        await world.cluster.delete(HPAS, "lost", namespace="default")
        await clock.sleep(minutes(1))
        await stop(task)
        return said

    assert run_virtual(main, start=START) == [
        (
            "no replicas are decided for HPA default/lost: failed to query scale subresource for Deployment/default/gone: "
            'deployments.apps "gone" not found; ask: kubetide explain hpa default/lost'
        ),
        "HPA default/lost: decided about again, or gone",
    ]


def test_many_hpas_about_which_nothing_is_decided_are_one_line():
    """The first is named with its error; those that come later have a line of their own."""
    hpas, at = UndecidedHpas(), Instant(START)
    errors = {f"shop/{name}": "no request" for name in "abcde"}
    assert hpas.sentences(errors, at) == []
    later = Instant(at + minutes(2))
    (line,) = hpas.sentences({**errors, "shop/f": "no target"}, later)
    assert line.startswith("no replicas are decided for HPA shop/a: no request; ")
    assert line.endswith("; likewise 4 other HPAs, which kubetide status names")
    assert hpas.sentences({**errors, "shop/f": "no target"}, Instant(later + minutes(1))) == []
    late, end = hpas.sentences({"shop/f": "no target"}, Instant(later + minutes(2)))
    assert late.startswith("no replicas are decided for HPA shop/f: no target")
    assert end == "HPA shop/a, shop/b, shop/c and 2 more: decided about again, or gone"
