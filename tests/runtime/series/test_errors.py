"""``cluster_autoscaler_errors_total``: calls whose failure makes a tick one that failed."""

from __future__ import annotations

import pytest
from tests.nodes.live import SHORT
from tests.runtime.series.scraped import reported

from kubetide.nodes.controller.act import ending_error
from kubetide.nodes.decision import AddTaint, DecreaseTarget, Outcome
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.objects.kinds import NODES
from kubetide.ports.errors import ApiError, CloudError, Forbidden
from kubetide.units.time import minutes, seconds

WRONG_SIZES = (DecreaseTarget("g", 1, "size"), DecreaseTarget("h", 1, "size"))
LEAVING = (AddTaint("n1", TO_BE_DELETED, "1", "NoSchedule"),)


@pytest.mark.parametrize(
    ("actions", "status", "error"),
    [
        (WRONG_SIZES, "failed", CloudError),
        (LEAVING, "failed", ApiError),
        (WRONG_SIZES, "ok", None),
        (LEAVING, "withheld", None),
        ((DecreaseTarget("g", 1, "timeout"),), "failed", None),
        ((AddTaint("n1", "other", "1", "NoSchedule"),), "failed", None),
    ],
)
def test_a_call_may_make_the_tick_one_that_failed(actions, status, error):
    """Calls after whose failure upstream goes on do not."""
    found = ending_error(actions, (Outcome(status, "no"),) * len(actions))
    assert error is None if found is None else isinstance(found, error)


class Untaintable:
    """A client that may not taint nodes for deletion."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def replace(self, kind, body, **where):
        if kind.kind == NODES.kind and any(
            one["key"] == TO_BE_DELETED for one in body["spec"].get("taints") or ()
        ):
            raise Forbidden("no")
        return await self._inner.replace(kind, body, **where)


def test_a_tick_that_cannot_taint_is_counted_and_not_successful():
    """It counts once whatever the number of nodes, and goes on to its end; the next tick, in cooldown, succeeds."""

    async def story(world):
        await world.deploy(replicas=3, cpu="1500m")
        await world.after(minutes(3))
        await world.scale("web", 0)
        health = world.controller.health
        while not health.failures:
            await world.after(seconds(1))
        found = world.read()
        assert found["last_activity", "mainSuccessful"] < found["last_activity", "main"]
        assert found["errors_total", "apiCallError"] == 1
        assert "could not be tainted for deletion: no" in health.last_failure
        assert "scaleDown:" in await world.status()
        await world.after(seconds(30))
        found = world.read()
        assert found["last_activity", "mainSuccessful"] == found["last_activity", "main"]
        assert found["errors_total", "apiCallError"] == 1
        health.failures = 0

    reported(story, wrap=Untaintable, **SHORT)
