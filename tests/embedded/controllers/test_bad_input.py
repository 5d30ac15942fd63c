"""Objects that cannot be read, as some other server may have stored them: the scheduler goes on with the others."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.controllers.live import play
from tests.scheduling import nonsense

from kubetide.objects.kinds import (
    CLAIMS,
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
)
from kubetide.objects.pod import pod_condition
from kubetide.testing import builders

PARTS = ("scheduler", "claims", "volumes")
KINDS = {
    "pvcs": CLAIMS,
    "pvs": PERSISTENT_VOLUMES,
    "storageClasses": STORAGE_CLASSES,
    "resourceSlices": RESOURCE_SLICES,
    "resourceClaims": RESOURCE_CLAIMS,
    "deviceClasses": DEVICE_CLASSES,
}
BUGS = "kubetide.embedded.controllers"


def put(live, kind, body):
    """Store an object as it is, past all checks."""
    meta = body["metadata"]
    name, namespace = meta.get("name") or "nameless", "shop" if kind.namespaced else ""
    identity = {
        "name": name,
        "uid": f"{kind.plural}-{name}",
        "creationTimestamp": "2026-03-02T05:00:00Z",
        **({"namespace": namespace} if namespace else {}),
    }
    named = {"apiVersion": kind.api_version, "kind": kind.kind, **body, "metadata": {**meta, **identity}}
    live.cluster._store.put(kind, (namespace, name), named)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(nonsense.nodes, max_size=2),
    st.lists(nonsense.pods, min_size=1, max_size=3),
    nonsense.objects,
)
def test_whatever_the_objects_say_others_are_bound(nodes, pods, objects):
    """Nodes, pods, volumes and devices with any nonsense in them: no part fails with a bug, and a good pod is bound."""
    bugs = []

    class Bugs(logging.Handler):
        def emit(self, record):
            if record.exc_info:
                bugs.append(record.exc_info[1])

    async def body(live):
        await live.add(NODES, builders.node("good", cpu="1000"))
        for kind, bodies in ((NODES, nodes), *((KINDS[name], some) for name, some in objects.items())):
            for one in bodies:
                put(live, kind, one)
        await live.add(PODS, builders.pod("good"))
        for one in pods:
            put(live, PODS, {**one, "status": {"phase": "Pending"}})
        await live.sleep(20)
        return (await live.get(PODS, "good")).spec.node_name

    handler = Bugs()
    logging.getLogger(BUGS).addHandler(handler)
    try:
        assert play(body, *PARTS)
    finally:
        logging.getLogger(BUGS).removeHandler(handler)
    assert bugs == []


def test_what_is_passed_over_is_reported_on_the_object():
    """A node's amount and a driver's slice that cannot be read get an event each; the pod goes where it fits."""

    async def body(live):
        put(live, NODES, builders.node("odd", extra={"status": {"allocatable": {"cpu": "many"}}}))
        spec = {
            "driver": "gpu.test",
            "pool": {"name": "odd", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "odd",
            "devices": [{"name": "a", "capacity": {"memory": {"value": "1.5.2"}}}],
        }
        put(live, RESOURCE_SLICES, {"metadata": {"name": "odd-gpu"}, "spec": spec})
        await live.add(NODES, builders.node("good"))
        await live.add(PODS, builders.pod("p"))
        await live.sleep(2)
        assert (await live.get(PODS, "p")).spec.node_name == "good"
        events = (await live.cluster.list(EVENTS)).items
        reported = {
            one.involved_object.name: one.message.partition(":")[0]
            for one in events
            if one.reason == "NotUnderstood"
        }
        assert reported == {"odd": "status.allocatable[cpu]", "odd-gpu": "its devices are left out"}

    play(body, *PARTS)


ODD = {
    "an amount": (
        {"containers": [{"name": "a", "resources": {"requests": {"cpu": "lots"}}}]},
        'a resource request cannot be read: "lots" is not a quantity',
    ),
    "an operator": (
        {
            "topologySpreadConstraints": [
                {
                    "topologyKey": "zone",
                    "maxSkew": 1,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]},
                }
            ]
        },
        '"Bogus" is not a valid label selector operator',
    ),
    # kube-scheduler never tries such a pod, and says nothing of it.
    "a claim": ({"resourceClaims": [{"name": "a"}]}, ""),
}


@pytest.mark.parametrize("what", sorted(ODD))
def test_a_pod_that_cannot_be_read_is_reported_why(what):
    """Its condition says what the scheduler says, if it is tried at all, and the next pod is bound."""
    spec, words = ODD[what]

    async def body(live):
        await live.add(NODES, builders.node("good"))
        odd = {"metadata": {"name": "odd"}, "spec": {"containers": [{"name": "a"}], **spec}}
        put(live, PODS, {**odd, "status": {"phase": "Pending"}})
        await live.add(PODS, builders.pod("p"))
        await live.sleep(2)
        reported = pod_condition(await live.get(PODS, "odd"), "PodScheduled")
        assert words in reported.message if words else reported is None
        assert (await live.get(PODS, "p")).spec.node_name == "good"

    play(body, *PARTS)
