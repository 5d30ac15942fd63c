"""Objects that contradict themselves, cannot be read or are far too large: a verdict, never an exception."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.scheduling import devices_of, volumes_of
from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import (
    ClusterFacts,
    Limits,
    Snapshot,
    classify,
    classify_unbound,
    equivalence_groups,
    estimate,
    place,
)

HUGE = "v" * (1 << 14)

amounts = st.sampled_from(
    [
        "1",
        "0",
        "-1",
        "500m",
        "9223372036854775808",
        "1e30",
        "1e400",
        "1e-400",
        "12345678901234567890E",
        "abc",
        "",
        "1.5.2",
        "5Gi5",
        "٣",
        1e300,
        10**40,
        0.1,
        -(10**30),
    ]
)
words = st.sampled_from(
    [
        "",
        "a",
        "b",
        "a/b/c",
        "é",
        "x" * 300,
        "=",
        "\x00",
        "-",
        "kubernetes.io/hostname",
        "zone",
        "pods",
        "cpu",
        HUGE,
    ]
)
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "", "Bogus", HUGE])
small = st.integers(-(2**70), 2**70)


def some(**fields):
    """An object with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def many(element, most=2):
    return st.one_of(st.none(), st.lists(element, max_size=most))


labels = st.dictionaries(words, words, max_size=3)
requirements = some(
    key=words, operator=operators, values=many(st.one_of(words, st.just("99999999999999999999")))
)
selectors = st.one_of(st.none(), some(matchLabels=labels, matchExpressions=many(requirements)))
node_terms = some(matchExpressions=many(requirements), matchFields=many(requirements))
pod_terms = some(
    labelSelector=selectors, namespaceSelector=selectors, namespaces=many(words), topologyKey=words
)
required = "requiredDuringSchedulingIgnoredDuringExecution"
affinity = some(
    nodeAffinity=st.fixed_dictionaries({required: some(nodeSelectorTerms=many(node_terms))}),
    podAffinity=st.fixed_dictionaries({required: many(pod_terms)}),
    podAntiAffinity=st.fixed_dictionaries({required: many(pod_terms)}),
)
spread = some(
    topologyKey=words,
    maxSkew=small,
    minDomains=small,
    whenUnsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway", "", "Bogus"]),
    labelSelector=selectors,
    matchLabelKeys=many(words),
    nodeAffinityPolicy=words,
    nodeTaintsPolicy=words,
)
resources = some(
    requests=st.dictionaries(words, amounts, max_size=3), limits=st.dictionaries(words, amounts, max_size=2)
)
containers = some(
    name=words,
    resources=resources,
    restartPolicy=st.sampled_from(["Always", "", "Bogus"]),
    ports=many(some(hostPort=st.integers(-1, 70000), protocol=words, hostIP=words)),
)
volumes = some(
    name=words,
    persistentVolumeClaim=some(claimName=words),
    ephemeral=st.just({}),
    rbd=some(monitors=many(words), pool=words, image=words),
)
resource_claims = some(name=words, resourceClaimName=words, resourceClaimTemplateName=words)
pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.sampled_from(["p0", "p1", "p2"])},
            optional={"namespace": words, "labels": labels, "uid": words},
        ),
        "spec": some(
            containers=many(containers),
            initContainers=many(containers),
            resources=resources,
            overhead=st.dictionaries(words, amounts, max_size=2),
            nodeSelector=labels,
            affinity=affinity,
            tolerations=many(some(key=words, operator=operators, value=words, effect=words)),
            topologySpreadConstraints=many(spread),
            volumes=many(volumes),
            resourceClaims=many(resource_claims),
            priority=st.integers(-(2**31), 2**31 - 1),
        ),
    }
)
nodes = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.sampled_from(["n0", "n1"])}, optional={"labels": labels}
        ),
        "status": some(allocatable=st.dictionaries(words, amounts, max_size=4)),
        "spec": some(unschedulable=st.booleans(), taints=many(some(key=words, value=words, effect=words))),
    }
)

claims = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": words}, optional={"namespace": words, "annotations": labels}
        )
    },
    optional={
        "spec": some(
            volumeName=words,
            storageClassName=words,
            accessModes=many(words),
            resources=some(requests=st.dictionaries(words, amounts, max_size=1)),
            selector=selectors,
        ),
        "status": some(phase=words),
    },
)
persistent_volumes = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": words}, optional={"labels": labels})},
    optional={
        "spec": some(
            capacity=st.dictionaries(st.just("storage"), amounts, max_size=1),
            claimRef=some(name=words, namespace=words),
            storageClassName=words,
            nodeAffinity=some(required=some(nodeSelectorTerms=many(node_terms))),
            csi=some(driver=words, volumeHandle=words),
        )
    },
)
storage_classes = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": words})},
    optional={
        "provisioner": words,
        "volumeBindingMode": st.sampled_from(["Immediate", "WaitForFirstConsumer", "", "Bogus"]),
        "allowedTopologies": many(some(matchLabelExpressions=many(some(key=words, values=many(words))))),
    },
)
expressions = st.sampled_from(
    ["true", "device.nope", "1 +", "", 'device.attributes["a"].b', HUGE, "(" * 9999]
)
device_selectors = many(some(cel=some(expression=expressions)))
node_selectors = some(nodeSelectorTerms=many(node_terms))
quantity_maps = st.dictionaries(words, amounts, max_size=2)
devices = some(
    name=words,
    attributes=st.dictionaries(words, some(int=st.integers(-5, 5), version=words, string=words), max_size=2),
    capacity=st.dictionaries(
        words,
        some(
            value=amounts,
            requestPolicy=some(default=amounts, validRange=some(min=amounts, max=amounts, step=amounts)),
        ),
        max_size=2,
    ),
    consumesCounters=many(
        some(counterSet=words, counters=st.dictionaries(words, some(value=amounts), max_size=1))
    ),
    nodeName=words,
    nodeSelector=node_selectors,
    allNodes=st.booleans(),
    taints=many(some(key=words, value=words, effect=st.sampled_from(["NoSchedule", "Bogus"]))),
    allowMultipleAllocations=st.booleans(),
)
slices = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": words})},
    optional={
        "spec": some(
            driver=words,
            pool=some(name=words, generation=st.integers(-3, 3), resourceSliceCount=st.integers(-1, 2)),
            nodeName=st.sampled_from(["n0", "n1", ""]),
            nodeSelector=node_selectors,
            allNodes=st.booleans(),
            perDeviceNodeSelection=st.booleans(),
            devices=many(devices),
            sharedCounters=many(
                some(name=words, counters=st.dictionaries(words, some(value=amounts), max_size=1))
            ),
        )
    },
)
wants = {
    "deviceClassName": words,
    "selectors": device_selectors,
    "allocationMode": st.sampled_from(["ExactCount", "All", "", "Bogus"]),
    "count": st.integers(-2, 2**62),
    "tolerations": many(some(key=words, operator=operators, value=words)),
    "capacity": some(requests=quantity_maps),
}
device_claims = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": words}, optional={"namespace": words})},
    optional={
        "spec": some(
            devices=some(
                requests=many(
                    some(
                        name=words,
                        exactly=some(**wants, adminAccess=st.booleans()),
                        firstAvailable=many(some(name=words, **wants)),
                    )
                ),
                constraints=many(some(requests=many(words), matchAttribute=words, distinctAttribute=words)),
            )
        ),
        "status": some(
            allocation=some(
                devices=some(
                    results=many(
                        some(
                            driver=words,
                            pool=words,
                            device=words,
                            shareID=words,
                            consumedCapacity=quantity_maps,
                        )
                    )
                ),
                nodeSelector=node_selectors,
            ),
            reservedFor=many(some(resource=st.just("pods"), name=words)),
        ),
    },
)
classes = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": words})},
    optional={"spec": some(selectors=device_selectors, extendedResourceName=words)},
)
objects = some(
    pvcs=st.lists(claims, max_size=2),
    pvs=st.lists(persistent_volumes, max_size=2),
    storageClasses=st.lists(storage_classes, max_size=1),
    resourceSlices=st.lists(slices, max_size=2),
    resourceClaims=st.lists(device_claims, max_size=2),
    deviceClasses=st.lists(classes, max_size=1),
)


def agree(snapshot, pod_class):
    """All ways of asking give one answer, with words where it is no."""
    fits = dict(zip(snapshot.node_names, snapshot.feasible(pod_class).tolist(), strict=True))
    snapshot.refusals_by_plugin(pod_class)
    counts = snapshot.refusals(pod_class)
    for name, found in fits.items():
        refusal = snapshot.first_refusal(pod_class, name)
        assert found == snapshot.fits(pod_class, name) == (refusal is None)
        assert found or all(isinstance(reason, str) for reason in refusal.reasons)
    assert all(fits.values()) or sum(counts.values())


@settings(max_examples=500, deadline=None)
@given(st.lists(nodes, max_size=3), st.lists(pods, min_size=1, max_size=3), objects)
def test_whatever_the_objects_say_there_is_a_verdict(given_nodes, given_pods, given_objects):
    """Nodes, pods, volumes and devices with any nonsense in them are judged, placed, estimated and taken off."""
    snapshot = Snapshot()
    facts = ClusterFacts(volumes=volumes_of(given_objects), devices=devices_of(given_objects))
    snapshot.set_facts(facts)
    for node in given_nodes:
        snapshot.set_node(msgspec.convert(node, Node))
    read = [msgspec.convert(pod, Pod) for pod in given_pods]
    for pod in read:
        agree(snapshot, classify(pod))
    snapshot.fork()
    place(snapshot, read)
    for name in ("n0", "n9"):
        snapshot.add_pod(read[0], name)
        agree(snapshot, classify(read[-1]))
    snapshot.revert()
    template = msgspec.convert(given_nodes[0], Node) if given_nodes else make_node("template")
    estimate(snapshot, template, read[:1], equivalence_groups(read), Limits((3,)))
    for pod in read:
        snapshot.remove_pod((pod.metadata.namespace, pod.metadata.name))


def test_ten_thousand_classes():
    """More classes than are remembered are each judged, and the first is judged again as before."""
    snapshot = Snapshot()
    for name in ("n0", "n1"):
        snapshot.set_node(make_node(name))
    kinds = [classify_unbound(make_pod(requests={"cpu": f"{number}m"})) for number in range(10_000)]
    verdicts = [snapshot.feasible(kind).all() for kind in kinds]
    assert verdicts == [number <= 4000 for number in range(10_000)]
    assert snapshot.feasible(kinds[0]).all()


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_claims_and_volumes_that_name_each_other_in_a_circle(mode):
    """A claim bound to a volume that is bound to another claim, bound to the first's volume: refused, with words."""
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    given = {
        "pvcs": [
            {
                "metadata": {"name": f"c{n}", "namespace": "default", "annotations": bound},
                "spec": {"volumeName": f"v{1 - n}", "storageClassName": "s"},
            }
            for n in range(2)
        ],
        "pvs": [
            {
                "metadata": {"name": f"v{n}"},
                "spec": {"claimRef": {"namespace": "default", "name": f"c{n}"}, "storageClassName": "s"},
            }
            for n in range(2)
        ],
        "storageClasses": [{"metadata": {"name": "s"}, "provisioner": "x", "volumeBindingMode": mode}],
    }
    snapshot = Snapshot()
    snapshot.set_facts(ClusterFacts(volumes=volumes_of(given)))
    snapshot.set_node(make_node("n0"))
    uses = [{"name": f"u{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(2)]
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "default"}, "spec": {"volumes": uses}}, Pod)
    agree(snapshot, classify(pod))


def test_labels_of_a_megabyte():
    """A selector on a value that no label may have matches nothing; the same as a node's label is equal all the same."""
    snapshot = Snapshot()
    text = "v" * (1 << 20)
    snapshot.set_node(make_node("n0", labels={"k": text}))
    assert snapshot.feasible(classify(make_pod(node_selector={"k": text}))).all()
    assert not snapshot.feasible(classify(make_pod(node_selector={"k": text + "!"}))).any()
