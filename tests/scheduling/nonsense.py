"""Objects that contradict themselves, cannot be read or are far too large, for hypothesis to draw."""

from __future__ import annotations

from hypothesis import strategies as st

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
        "-9223372036854775809",
        "9223372036854775807Ei",
        "1E",
        "1e",
        "1e+",
        "0x10",
        "NaN",
        "Infinity",
        "1 Gi",
        "+1",
        ".5",
        "1.",
        "-",
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
times = st.sampled_from(
    [
        "2026-03-01T00:00:00Z",
        "2026-03-02T10:00:00",
        "2027-03-02T10:00:00Z",
        "0001-01-01T00:00:00+23:00",
        "9999-12-31T23:59:59-23:00",
        "yesterday",
        "",
        None,
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
    ports=many(some(hostPort=st.one_of(st.integers(-1, 70000), small), protocol=words, hostIP=words)),
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
            priority=small,
        ),
    }
)
nodes = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.sampled_from(["n0", "n1"])}, optional={"labels": labels}
        ),
        "status": some(
            allocatable=st.dictionaries(words, amounts, max_size=4),
            capacity=st.dictionaries(st.sampled_from(["cpu", "memory", "pods"]), amounts, max_size=3),
        ),
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
request_fields = {
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
                        exactly=some(**request_fields, adminAccess=st.booleans()),
                        firstAvailable=many(some(name=words, **request_fields)),
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
