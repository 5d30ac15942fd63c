"""The view of a pod is made when the pod arrives, as an error there would stop the cache."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubetide.horizontal.facts.pods import PodTable
from kubetide.horizontal.facts.views import PodView, view_of_pod
from kubetide.objects.pod import Pod

AMOUNTS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=9),
    st.from_regex(r"-?[0-9]{0,40}(\.[0-9]{0,40})?([eE][-+]?[0-9]{1,12}|[numkMGTPE]i?)?", fullmatch=True),
)
TIMES = st.sampled_from(
    [
        None,
        "",
        "soon",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2262-04-12T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "1000-01-01T00:00:00.123456789+23:59",
    ]
)
RESOURCES = st.fixed_dictionaries(
    {
        "requests": st.none()
        | st.dictionaries(st.sampled_from(["cpu", "memory", "hugepages-2Mi", "x"]), AMOUNTS, max_size=2)
    }
)
CONTAINERS = st.none() | st.lists(
    st.fixed_dictionaries({"restartPolicy": st.sampled_from([None, "Always"]), "resources": RESOURCES}),
    max_size=2,
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {
                "labels": st.sampled_from([None, {}, {"": ""}, {"": "", "a": "b"}]),
                "ownerReferences": st.sampled_from([None, [], [{"controller": True}], [{}]]),
                "deletionTimestamp": TIMES,
            }
        ),
        "spec": st.fixed_dictionaries(
            {
                "containers": CONTAINERS,
                "initContainers": CONTAINERS,
                "resources": st.none() | RESOURCES,
                "overhead": RESOURCES.map(lambda one: one["requests"]),
            }
        ),
        "status": st.fixed_dictionaries(
            {
                "startTime": TIMES,
                "conditions": st.none()
                | st.lists(st.fixed_dictionaries({"type": st.just("Ready"), "lastTransitionTime": TIMES})),
            }
        ),
    }
)


@given(PODS)
def test_every_pod_that_can_be_read_has_a_view(body):
    """Whatever its amounts, times and owners are, and the view can be written into a record and read again."""
    view = view_of_pod(msgspec.json.decode(msgspec.json.encode(body), type=Pod))
    assert msgspec.json.decode(msgspec.json.encode(view), type=PodView) == view


@given(st.lists(PODS, max_size=3))
def test_every_pod_with_a_view_has_a_row(bodies):
    """Whatever its times and labels are; its row goes with it, and the next pod gets one."""
    table = PodTable()
    for body in [*bodies, *bodies]:
        view = view_of_pod(msgspec.convert(body, Pod))
        table.put(view)
        assert (table.ready_since[0], table.views[0]) == (view.ready_since, view)
        table.remove((view.namespace, view.name))
        assert len(table.rows) == 0
