"""What the updater adds to the answer about a VPA: how many pods are still to be changed, and what they wait for."""

from __future__ import annotations

from tests.vertical.making import NOW, ago, pod, vpa
from tests.vertical.test_overview import PODS, after_loop

from kubetide.units.time import minutes
from kubetide.vertical.updater.at_target import at_target_sentence
from kubetide.vertical.updater.overview import pods_of_vpa
from kubetide.vertical.updater.state import LeaseView


def said(pods, made, **more):
    return pods_of_vpa(after_loop(pods, [made], **more), "default/web", NOW)


def fine(count):
    return [pod(f"fine-{at}", cpu="500m", memory="500Mi", age=minutes(30)) for at in range(count)]


def test_pods_that_wait_are_counted_with_what_they_wait_for():
    """What holds all pods, or one ReplicaSet; pods within the bounds wait for nothing."""
    stale = LeaseView(renewed=ago(minutes(30)))
    why = "the admission controller's lease is too old: evicted pods would come back unchanged"
    assert said(PODS, vpa(), lease=stale) == f"All its 3 pods are to be changed and wait: {why}."
    assert (
        said([*PODS[:1], *fine(1)], vpa(), lease=stale)
        == f"1 of its 2 pods is to be changed and waits: {why}."
    )
    lonely = "ReplicaSet default/web-1 has 1 live pod, required 2; for fewer set updatePolicy.minReplicas of the VPA, or --min-replicas where it sets none"
    assert said(PODS[:1], vpa()) == f"Its pod is to be changed and waits: {lonely}."


def test_pods_that_were_changed_are_counted():
    """As many as may be down at once; the others wait for them."""
    assert said(PODS, vpa()) == (
        "2 of its 3 pods are to be changed and wait: as many replicas are down or being changed as eviction-tolerance "
        "allows. 1 of its 3 pods was changed just now."
    )


def test_pods_that_need_no_change_say_why_where_it_is_the_same_for_all():
    """Nothing is said of a VPA that changes no running pod: its mode is said already."""
    why = "requests are within the bounds, and the pod is younger than the lifetime threshold"
    assert said(fine(2), vpa()) == f"None of its 2 pods is to be changed now: {why}."
    assert said(fine(1), vpa()) == "Its pod is not to be changed now."
    assert said(PODS, vpa("Off")) == ""


def test_what_the_pods_would_request_at_the_target():
    """Their requests and their targets in all, also of a VPA that changes no pod; nothing where both are the same."""
    for mode in ("Recreate", "Off"):
        state = after_loop(PODS, [vpa(mode)]).state
        assert at_target_sentence(state, "default/web") == (
            "At the target its pods request cpu 1500m in place of 300m and memory 1.46Gi in place of 300Mi in all."
        )
    assert at_target_sentence(after_loop(fine(2), [vpa()]).state, "default/web") == ""
    assert at_target_sentence(after_loop(PODS, [vpa()]).state, "default/other") == ""
