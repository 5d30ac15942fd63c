"""The controller that serves an HPA follows from its metadata alone."""

from __future__ import annotations

import msgspec
import pytest
from tests.horizontal.running import START

from kubetide.runtime.handover.ownership import (
    ANNOTATION,
    CLUSTER_WIDE,
    UNCLAIMED,
    ManagedHpa,
    ManagedWorkload,
    ScaleView,
    State,
    Write,
    consent_text,
    scale_view_of,
    verdict_of,
    view_of,
)
from kubetide.units.time import ZERO, after, before, format_rfc3339, hours, minutes, seconds


def entry(manager=CLUSTER_WIDE, *, ago=ZERO, subresource="status"):
    return {
        "manager": manager,
        "operation": "Update",
        "subresource": subresource,
        "time": format_rfc3339(before(START, ago)),
    }


def hpa(*entries, annotation=None):
    meta = {"name": "web", "namespace": "default", "managedFields": list(entries)}
    if annotation is not None:
        meta["annotations"] = {ANNOTATION: annotation}
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}
    return view_of(msgspec.convert({"metadata": meta, "spec": spec}, ManagedHpa))


def verdict(view, *, scale=None, cluster_wide=None, others=0, unclaimed=ZERO):
    return verdict_of(
        view,
        now=START,
        scale=scale,
        cluster_wide=cluster_wide,
        served_by_others=others,
        unclaimed=unclaimed,
    )


def handed_over(ago):
    return consent_text(before(START, ago))


@pytest.mark.parametrize(
    ("view", "state", "ended"),
    [
        (hpa(entry()), State.THEIRS, False),
        (hpa(entry(ago=hours(48))), State.THEIRS, False),
        (hpa(entry("keda", ago=hours(48)), entry("kubetide")), State.THEIRS, False),
        (hpa(entry("kubetide", ago=hours(2))), State.OURS, False),
        (hpa(entry("kubetide-handover")), State.OURS, False),
        (hpa(entry("kubectl-edit"), entry("kubetide")), State.OURS, False),
        (hpa(entry(ago=minutes(5)), annotation=handed_over(minutes(4))), State.OURS, False),
        (hpa(entry(ago=minutes(5)), annotation=handed_over(minutes(6))), State.THEIRS, True),
        (hpa(annotation=handed_over(minutes(6))), State.OURS, False),
        (hpa(entry("kubetide"), annotation="others"), State.RELEASED, False),
        (hpa(entry(), annotation="yes please"), State.THEIRS, False),
        (hpa(entry(), annotation=f"kubetide@{format_rfc3339(after(START, hours(1)))}"), State.THEIRS, False),
        ({"manager": "odd"} and hpa({**entry("odd"), "time": "yesterday"}), State.THEIRS, False),
    ],
)
def test_a_status_belongs_to_who_wrote_it_until_it_is_handed_over(view, state, ended):
    """However long ago the other wrote: it writes nothing while nothing changes."""
    found = verdict(view)
    assert (found.state, found.ended) == (state, ended)


@pytest.mark.parametrize(
    ("others", "unclaimed", "state"),
    [
        (0, ZERO, State.UNCLAIMED),
        (0, before(UNCLAIMED, seconds(1)), State.UNCLAIMED),
        (0, UNCLAIMED, State.OURS),
        (1, hours(1), State.BLOCKED),
    ],
)
def test_an_hpa_without_a_status_is_adopted_after_a_minute_unless_others_serve_any(others, unclaimed, state):
    """A new HPA beside those of upstream's controller is upstream's, however slow that is."""
    assert verdict(hpa(), others=others, unclaimed=unclaimed).state is state


def test_a_write_to_the_scale_or_to_another_hpa_ends_ours():
    """Upstream's controller is one for all HPAs, and a scale has one writer."""
    ours = hpa(entry("kubetide", ago=minutes(1)))
    late, early = Write(START, CLUSTER_WIDE), Write(before(START, hours(1)), CLUSTER_WIDE)
    assert verdict(ours, cluster_wide=early).state is State.OURS
    assert verdict(ours, cluster_wide=late) == (State.THEIRS, late, True)
    scaled = ScaleView("default", "web", (Write(START, "robot"),))
    assert verdict(ours, scale=scaled) == (State.THEIRS, Write(START, "robot"), True)
    handed = hpa(annotation=handed_over(ZERO))
    assert verdict(handed, scale=scaled, cluster_wide=late).state is State.OURS


def test_people_and_who_scales_beside_an_hpa_are_no_controllers():
    """``kubectl scale`` is overridden as upstream does; KEDA scales to and from zero beside any HPA controller."""
    entries = [
        entry("kubectl", subresource="scale"),
        entry("keda", subresource="scale"),
        entry("kubetide", subresource="scale"),
        entry("robot", subresource="scale"),
        entry("rolls-out", subresource=""),
    ]
    meta = {"name": "web", "namespace": "default", "managedFields": entries}
    found = scale_view_of(msgspec.convert({"metadata": meta}, ManagedWorkload))
    assert found.foreign == (Write(START, "robot"),)
