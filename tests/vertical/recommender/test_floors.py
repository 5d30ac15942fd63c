"""OOM kills as lower bounds, and roll-backs: options beyond upstream."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.vertical.recommender.running import START, WEB, Run, pod, samples, vpa

from kubetide.units.quantity import Quantity
from kubetide.units.time import Instant, hours, minutes
from kubetide.vertical.recommender.core import ALGORITHM
from kubetide.vertical.recommender.decision import Outcomes
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.dump import dump
from kubetide.vertical.recommender.explain import explain
from kubetide.vertical.recommender.facts.views import Oom, Requested
from kubetide.vertical.recommender.settings import Settings

MIB = 1 << 20
BOUNDED = Settings(oom_lower_bound=True)
ROLLING = Settings(rollback_window=hours(12))


def memory(run, bound="target"):
    (one,) = run.status().recommendation.container_recommendations
    return Quantity.parse(getattr(one, bound)["memory"]).value()


def kill(run, had, *, unlimited=False):
    return Oom("shop", "web-1", "app", run.now, had, unlimited)


def fed(options, count=200):
    """A run with hours of usage behind it."""
    run = Run(options)
    run.tick(("web-1", "app", 100, 300 * MIB), vpas=[vpa()], pods=[pod()])
    for _ in range(count):
        run.tick(("web-1", "app", 100, 300 * MIB), after=hours(1))
    return run


def test_a_kill_raises_target_and_bounds_at_once_and_for_a_window():
    """To what the kill proved, without a margin on top; after the window usage alone counts again."""
    run, upstream = fed(BOUNDED), fed(Settings())
    for one in (run, upstream):
        one.tick(ooms=[kill(one, 500 * MIB)])
    assert memory(upstream) > 1.15 * 600 * MIB
    assert memory(run) == memory(run, "lower_bound") == 600 * MIB
    assert memory(run, "upper_bound") >= 600 * MIB
    said = "\n".join(explain(run.state, *WEB, "app"))
    assert "which an OOM kill at 2026-03-10T16:01:00Z proved necessary" in said
    run.tick(("web-1", "app", 100, 300 * MIB), after=hours(25))
    assert memory(run) < 400 * MIB
    assert run.state.floors.held == {}


@given(kills=st.lists(st.integers(1, 4000), min_size=1, max_size=30))
@settings(max_examples=40)
def test_kills_without_a_limit_never_add_up(kills):
    """Whatever a container requested when its node ran out of memory, only what it has used counts."""
    run = Run(BOUNDED)
    run.tick(("web-1", "app", 100, 300 * MIB), vpas=[vpa()], pods=[pod()])
    for had in kills:
        run.tick(("web-1", "app", 100, 300 * MIB), ooms=[kill(run, had * MIB, unlimited=True)])
    assert memory(run) == 400 * MIB


@given(kills=st.lists(st.integers(1, 4000), min_size=1, max_size=20))
@settings(max_examples=40)
def test_the_bound_is_that_of_the_greatest_kill(kills):
    """Kills in one window are no sum, in whatever order they come, and no kill is forgotten within it."""
    run = Run(BOUNDED)
    run.tick(vpas=[vpa()], pods=[pod()])
    run.tick(ooms=[kill(run, had * MIB) for had in kills])
    most = max(kills) * MIB
    assert memory(run) == max(most + 100 * MIB, int(most * 1.2), 250 * MIB)


def requested(cpu, of_memory, limit=0):
    return {"app": Requested(cpu, of_memory * MIB, limit)}


def test_a_kill_after_less_memory_brings_the_old_request_back():
    """A pod was shrunk and killed: the earlier request is recommended for the window, and explained."""
    run = fed(ROLLING, 5)
    run.tick(pods=[pod(resources=requested(500, 1000))])
    run.tick(pods=[pod(resources=requested(500, 400))])
    assert memory(run) < 500 * MIB
    run.tick(ooms=[kill(run, 400 * MIB)])
    assert memory(run) == 1000 * MIB
    assert "raised to 1000Mi, what the pods asked for before" in "\n".join(explain(run.state, *WEB, "app"))
    run.tick(("web-1", "app", 100, 300 * MIB), after=hours(13))
    assert memory(run) < 1000 * MIB


def test_throttling_after_less_cpu_brings_the_old_request_back():
    """Ten samples at the limit after a change; as many before it are no rise."""

    def cpu(limit_before):
        run = Run(ROLLING)
        run.tick(vpas=[vpa()], pods=[pod(resources=requested(1000, 100, limit_before))])
        for _ in range(20):
            run.tick(("web-1", "app", 400, 90 * MIB))
        run.tick(pods=[pod(resources=requested(300, 100, 400))])
        for _ in range(10):
            run.tick(("web-1", "app", 400, 90 * MIB))
        return run.target()["cpu"]

    assert cpu(2000) == "1"
    assert cpu(400) == "476m"


def test_what_is_long_ago_is_not_brought_back():
    """A kill later than the window after the change is another matter."""
    run = fed(ROLLING, 5)
    run.tick(pods=[pod(resources=requested(500, 1000))])
    run.tick(pods=[pod(resources=requested(500, 400))])
    run.tick(after=hours(13))
    run.tick(ooms=[kill(run, 400 * MIB)])
    assert memory(run) < 1000 * MIB


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 900), st.integers(1, 900), st.booleans(), st.integers(0, 900)), max_size=12
    )
)
@settings(max_examples=30)
def test_a_record_with_floors_decides_again_to_the_byte(steps):
    """Kills, changes and throttling in any order: a core made of a full record goes on as the one that wrote it."""
    first = ALGORITHM.core()
    options = Settings(oom_lower_bound=True, rollback_window=hours(1))
    first.apply(ALGORITHM.encode(Delta(at=START, settings=options, vpas=[vpa()])), full=True)
    for number, (cpu, held, killed, limit) in enumerate(steps, 1):
        now = Instant(START + minutes(7 * number))
        delta = Delta(
            at=now,
            pods=[pod(resources=requested(cpu, held, limit))],
            samples=samples(now, ("web-1", "app", min(cpu, limit or cpu), held * MIB)),
            ooms=[Oom("shop", "web-1", "app", now, held * MIB)] if killed else [],
        )
        first.apply(ALGORITHM.encode(delta), full=False)
        first.decide(now)
        first.absorb(ALGORITHM.encode(Outcomes()), now)
    second = ALGORITHM.core()
    second.apply(ALGORITHM.encode(dump(first.state)), full=True)
    assert ALGORITHM.encode(dump(second.state)) == ALGORITHM.encode(dump(first.state))
    later = Instant(START + hours(2))
    ooms = [Oom("shop", "web-1", "app", later, 5 * MIB)]
    delta = ALGORITHM.encode(Delta(at=later, pods=[pod(resources=requested(1, 1))], ooms=ooms))
    for core in (first, second):
        core.apply(delta, full=False)
    assert first.decide(later) == second.decide(later)
    assert ALGORITHM.encode(dump(first.state)) == ALGORITHM.encode(dump(second.state))
