from __future__ import annotations

from math import ceil, floor

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.embedded.controllers.live import play
from tests.embedded.controllers.test_deployment import PARTS, begin, change, images, strategy, version

from kubetide.embedded.controllers.workloads.owned_pods import is_active, is_ready

BOUNDS = st.one_of(st.integers(0, 3), st.sampled_from(["0%", "10%", "25%", "34%", "50%", "100%"]))


def number(bound, replicas, rounded):
    return bound if isinstance(bound, int) else rounded(int(bound[:-1]) * replicas / 100)


def posts(surge, unavailable, replicas):
    """How many may be too many and how many too few: up, down, and never both none."""
    most, least = number(surge, replicas, ceil), number(unavailable, replicas, floor)
    return (most, least) if most or least else (0, 1)


@settings(max_examples=40, deadline=None)
@given(
    replicas=st.integers(1, 6),
    surge=BOUNDS,
    unavailable=BOUNDS,
    pauses=st.lists(st.sampled_from([0.0, 0.5, 3.0, 60.0]), min_size=1, max_size=3),
    expires=st.booleans(),
)
@example(replicas=6, surge=1, unavailable=1, pauses=[0.0, 0.0, 0.0], expires=False)
def test_a_rollout_stays_between_its_bounds(replicas, surge, unavailable, pauses, expires):
    """At every change of a pod, enough are ready and not too many are there, also when rollouts overlap."""
    assume(number(surge, 100, ceil) or number(unavailable, 100, ceil))  # both 0 is refused
    most, least = posts(surge, unavailable, replicas)

    async def body(live):
        await begin(live, replicas, **strategy(surge, unavailable))
        seen = []

        def note(*_):
            active = [pod for pod in live.pods.objects.values() if is_active(pod)]
            seen.append((sum(map(is_ready, active)), len(active)))

        note()
        live.pods.on_change(note)
        for count, pause in enumerate(pauses, start=2):
            await change(live, template=version(count))
            await live.sleep(pause)
            if expires:
                live.cluster.expire_watches()
        await live.sleep(120)
        assert await images(live) == [str(len(pauses) + 1)] * replicas
        assert len(seen) > replicas
        assert min(ready for ready, _ in seen) >= replicas - least
        assert max(there for _, there in seen) <= replicas + most

    play(body, *PARTS)


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "most", "fewest"),
    [
        (4, 1, 0, 5, 4),
        (4, 0, 1, 4, 3),
        (10, "25%", "25%", 13, 8),
        (3, "25%", "25%", 4, 3),
        (1, "25%", "25%", 2, 1),
        (5, "100%", 0, 10, 5),
        (2, 0, "25%", 2, 1),
        (4, 0, "100%", 4, 0),
    ],
)
def test_a_rollout_uses_its_whole_surge(replicas, surge, unavailable, most, fewest):
    """A rollout goes just as far as its bounds let it: surge rounded up, unavailable rounded down, not both 0."""

    async def body(live):
        await begin(live, replicas, **strategy(surge, unavailable))
        seen = []
        live.pods.on_change(
            lambda *_: seen.append([pod for pod in live.pods.objects.values() if is_active(pod)])
        )
        await change(live, template=version(2))
        await live.sleep(120)
        assert max(len(active) for active in seen) == most
        assert min(sum(map(is_ready, active)) for active in seen) == fewest

    play(body, *PARTS)
