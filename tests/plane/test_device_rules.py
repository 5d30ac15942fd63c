"""A real API server and the embedded one answer alike about claims, classes and slices of devices."""

from __future__ import annotations

import pytest
from tests.objects import samples
from tests.plane.alike import differing_answers, shown_by_both

pytestmark = pytest.mark.slow

LONG = "x" * 64


def exactly(**fields):
    return {"name": "one", "exactly": {"deviceClassName": "gpu.test", **fields}}


def selected(expression):
    return {"selectors": [{"cel": {"expression": expression}}]}


def device(name="gpu-0", **fields):
    return {"name": name, **fields}


def pool(**fields):
    return {"name": "n1", "generation": 1, "resourceSliceCount": 1, **fields}


ALTERNATIVE = {"name": "big", "deviceClassName": "gpu.test"}
TERM = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}

CREATED = {
    "claim": samples.resource_claim(),
    "claim of all": samples.resource_claim(request=exactly(allocationMode="All")),
    "claim of all and a number": samples.resource_claim(request=exactly(allocationMode="All", count=1)),
    "claim of less than none": samples.resource_claim(request=exactly(count=-1)),
    "claim in another mode": samples.resource_claim(request=exactly(allocationMode="Most")),
    "claim without a class": samples.resource_claim(request=exactly(deviceClassName="")),
    "claim of an odd class": samples.resource_claim(request=exactly(deviceClassName="A b")),
    "claim without a kind of request": samples.resource_claim(request={"name": "one"}),
    "claim with both kinds": samples.resource_claim(request={**exactly(), "firstAvailable": [ALTERNATIVE]}),
    "claim with alternatives": samples.resource_claim(
        request={"name": "one", "firstAvailable": [ALTERNATIVE, {**ALTERNATIVE, "name": "small"}]}
    ),
    "claim with an alternative twice": samples.resource_claim(
        request={"name": "one", "firstAvailable": [ALTERNATIVE, ALTERNATIVE]}
    ),
    "claim with too many alternatives": samples.resource_claim(
        request={"name": "one", "firstAvailable": [{**ALTERNATIVE, "name": f"a{n}"} for n in range(9)]}
    ),
    "claim with an odd name": samples.resource_claim(request={**exactly(), "name": "A_b"}),
    "claim with a request twice": samples.resource_claim(requests=[exactly(), exactly()]),
    "claim with too many requests": samples.resource_claim(
        requests=[{**exactly(), "name": f"r{number}"} for number in range(33)]
    ),
    "claim that selects": samples.resource_claim(request=exactly(**selected("device.driver == 'a'"))),
    "claim that selects nothing": samples.resource_claim(request=exactly(selectors=[{}])),
    "claim that selects by a number": samples.resource_claim(request=exactly(**selected("1"))),
    "claim that selects by no expression": samples.resource_claim(request=exactly(**selected("1 +"))),
    "claim that selects by an unknown": samples.resource_claim(request=exactly(**selected("pod.name"))),
    "claim that selects at length": samples.resource_claim(
        request=exactly(**selected("true || " * 1500 + "true"))
    ),
    "claim with a constraint": samples.resource_claim(
        constraints=[{"requests": ["one"], "matchAttribute": "gpu.test/model"}]
    ),
    "claim with an empty constraint": samples.resource_claim(constraints=[{}]),
    "claim with a constraint of others": samples.resource_claim(
        constraints=[{"requests": ["two"], "matchAttribute": "gpu.test/model"}]
    ),
    "claim with a plain attribute": samples.resource_claim(constraints=[{"matchAttribute": "model"}]),
    "template": samples.resource_claim_template(),
    "template without a class": samples.resource_claim_template(request=exactly(deviceClassName="")),
    "class": samples.device_class(),
    "class of an extended resource": samples.device_class(extendedResourceName="test.com/gpu"),
    "class of an odd resource": samples.device_class(extendedResourceName="cpu"),
    "class that selects nothing": samples.device_class(**selected("")),
    "class of all": samples.device_class(selectors=None),
    "slice": samples.resource_slice(),
    "slice without a driver": samples.resource_slice(driver=""),
    "slice of a long driver": samples.resource_slice(driver=LONG),
    "slice of an odd driver": samples.resource_slice(driver="a_b"),
    "slice without a pool": samples.resource_slice(pool=pool(name="")),
    "slice of an odd pool": samples.resource_slice(pool=pool(name="A b/c")),
    "slice of none": samples.resource_slice(pool=pool(resourceSliceCount=0, generation=-1)),
    "slice of nowhere": samples.resource_slice(nodeName=None),
    "slice of everywhere": samples.resource_slice(nodeName=None, allNodes=True),
    "slice of two places": samples.resource_slice(allNodes=True),
    "slice not of all nodes": samples.resource_slice(allNodes=False),
    "slice without a name of a node": samples.resource_slice(nodeName=""),
    "slice of an odd node": samples.resource_slice(nodeName="A b"),
    "slice of chosen nodes": samples.resource_slice(
        nodeName=None, nodeSelector={"nodeSelectorTerms": [TERM]}
    ),
    "slice of nodes chosen twice": samples.resource_slice(
        nodeName=None, nodeSelector={"nodeSelectorTerms": [TERM, TERM]}
    ),
    "slice with a device twice": samples.resource_slice(devices=[device(), device()]),
    "slice with an odd device": samples.resource_slice(devices=[device("A b")]),
    "slice with too many devices": samples.resource_slice(
        devices=[device(f"gpu-{number}") for number in range(129)]
    ),
    "device without a value": samples.resource_slice(devices=[device(attributes={"model": {}})]),
    "device with two values": samples.resource_slice(
        devices=[device(attributes={"model": {"int": 1, "bool": True}})]
    ),
    "device with an odd version": samples.resource_slice(
        devices=[device(attributes={"model": {"version": "v1"}})]
    ),
    "device with a long text": samples.resource_slice(
        devices=[device(attributes={"model": {"string": LONG + "x"}})]
    ),
    "device with capacity": samples.resource_slice(devices=[device(capacity={"memory": {"value": "8Gi"}})]),
    "device of a node": samples.resource_slice(devices=[device(nodeName="n1")]),
    "device of no node": samples.resource_slice(nodeName=None, perDeviceNodeSelection=True),
    "device of two nodes": samples.resource_slice(
        nodeName=None, perDeviceNodeSelection=True, devices=[device(nodeName="n1", allNodes=True)]
    ),
}

UPDATED = {
    "claim keeps what it asks for": (
        samples.resource_claim(),
        {"spec": {"devices": {"requests": [{**exactly(), "name": "two"}]}}},
    ),
    "template keeps what it asks for": (
        samples.resource_claim_template(),
        {"spec": {"spec": {"devices": {"requests": [{**exactly(), "name": "two"}]}}}},
    ),
    "class may change": (samples.device_class(), {"spec": selected("true")}),
    "slice may change": (samples.resource_slice(), {"spec": {"pool": {"generation": 2}}}),
    "slice keeps its place": (
        samples.resource_slice(),
        {"spec": {"driver": "b", "nodeName": "n2", "pool": {"name": "n2"}}},
    ),
}

SHOWN = (
    samples.resource_claim(),
    samples.resource_claim_template(),
    samples.device_class(),
    samples.resource_slice(),
    samples.resource_slice("everywhere", nodeName=None, allNodes=True),
)


def test_objects_are_judged_alike(quiet_plane):
    """Both take an object or a change of it, or both refuse it for the same fields with the same words."""
    assert differing_answers(quiet_plane, CREATED, UPDATED) == {}


def test_kubectl_shows_the_same(quiet_plane, tmp_path):
    """The columns and cells of each kind."""
    ours, real = shown_by_both(quiet_plane, SHOWN, tmp_path)
    assert ours == real
