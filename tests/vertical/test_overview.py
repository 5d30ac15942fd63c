"""The VPA loops' parts of the page of ``kubetide status``: VPAs with a problem, and pods that wait to be changed."""

from __future__ import annotations

from msgspec.structs import replace
from tests.vertical.making import NOW, ago, pod, state, vpa
from tests.vertical.recommender import running

from kubetide.units.time import minutes
from kubetide.vertical.recommender.core import ALGORITHM
from kubetide.vertical.recommender.overview import OVERVIEW as RECOMMENDER
from kubetide.vertical.targets import Target
from kubetide.vertical.updater.core import UpdaterCore
from kubetide.vertical.updater.decide import decide
from kubetide.vertical.updater.overview import OVERVIEW as UPDATER
from kubetide.vertical.updater.state import LeaseView

PODS = [pod(f"web-{number}") for number in range(3)]


def after_loop(pods, vpas, *, lease=None, **settings):
    """Return a core after one loop in which every command is withheld."""
    core = UpdaterCore()
    core.state = state(pods, vpas, **settings)
    if lease is not None:
        core.state.lease = lease
    core.reasons = tuple(decide(core.state, NOW)[1].reasons)
    return core


def rows_of(core):
    [table] = UPDATER.tables(core, NOW)
    assert table.title == "pods with outdated requests"
    return [row[:3] for row in table.rows]


def test_pods_that_are_to_change_say_why_they_are_not():
    """What holds all of them, what holds those of one VPA, and the pod to ask about."""
    stale = after_loop(PODS, [vpa()], lease=LeaseView(renewed=ago(minutes(30))))
    why = "the admission controller's lease is too old: evicted pods would come back unchanged"
    assert rows_of(stale) == [("default/web", 3, why)]
    assert UPDATER.holds(stale) == (why,)
    [table] = UPDATER.tables(stale, NOW)
    assert table.rows[0][3] == "ask: kubetide explain update default/web-0"
    assert table.sentence == "Pods that wait for their new requests: 3."
    lonely = after_loop(PODS[:1], [vpa()])
    assert rows_of(lonely) == [
        (
            "default/web",
            1,
            "ReplicaSet default/web-1 has 1 live pod, required 2; for fewer set updatePolicy.minReplicas of the VPA, or --min-replicas where it sets none",
        )
    ]
    assert UPDATER.holds(lonely) == ()


def test_a_closed_window_is_named():
    """Pods that wait for the update window are listed with it, though the loop says no more of them."""
    closed = after_loop(PODS, [vpa()], update_windows="Sun 01:00-02:00")
    assert rows_of(closed) == [
        ("default/web", 3, "now is outside of the windows in which pods may be changed")
    ]


def test_pods_that_are_fine_or_left_alone_are_not_listed():
    """Requests within the bounds, and the modes that change no running pod."""
    assert (
        rows_of(after_loop([pod(f"web-{at}", cpu="500m", memory="500Mi") for at in range(3)], [vpa()])) == []
    )
    assert rows_of(after_loop(PODS, [vpa("Off")])) == []
    assert UPDATER.holds(after_loop(PODS, [vpa("Off")])) == ()


def test_vpas_with_a_problem_are_listed():
    """A target that is not there, no pods, no sample, and two VPAs on one target; a VPA that serves its pods is left out."""
    run = running.Run()
    views = [
        running.vpa("fine"),
        replace(running.vpa("lost"), target=Target(problem="no such object")),
        running.vpa("empty", "app=nobody"),
        running.vpa("first", "app=api"),
        running.vpa("second", "app=api"),
        running.vpa("quiet", "app=api", mode="Off"),
    ]
    api = replace(running.pod("api-1"), labels={"app": "api"})
    run.tick(("web-1", "app", 380, 1 << 28), vpas=views, pods=[running.pod(), api])
    core = ALGORITHM.core()
    core.state = run.state
    [table] = RECOMMENDER.tables(core, run.now)
    found = {row[0]: row[2] for row in table.rows}
    same = "VPAs first, second select the same pods: of several on one target only the oldest changes them"
    assert found == {
        "shop/lost": "no such object",
        "shop/empty": "no pods match it",
        "shop/first": f"no sample of its containers yet; {same}",
        "shop/second": f"no sample of its containers yet; {same}",
        "shop/quiet": "no sample of its containers yet",
    }
    assert table.rows[0][3] == "ask: kubetide explain vpa shop/empty"
    assert table.sentence == "VPAs with a problem: shop/empty, shop/first, shop/lost and 2 more."
