"""Pods, their containers, and small objects that the API server would refuse; whatever comes, validation answers."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objects import samples
from tests.objects.validating import DNS_LABEL, problems

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.rules.validation import validate
from kubetide.objects.kinds import KINDS
from kubetide.units.patch import merge_patch


def container(**fields):
    return samples.pod(containers=[{"name": "web", "image": "x", **fields}])


def resources(**fields):
    return container(resources=fields)


C0 = "spec.containers[0]"


CASES = [
    # metadata
    (
        merge_patch(samples.pod(), {"metadata": {"name": None}}),
        ["metadata.name: Required value: name or generateName is required"],
    ),
    (merge_patch(samples.pod(), {"metadata": {"namespace": None}}), ["metadata.namespace: Required value"]),
    (
        merge_patch(samples.pod(), {"metadata": {"namespace": "Shop"}}),
        [f'metadata.namespace: Invalid value: "Shop": {DNS_LABEL}'],
    ),
    (
        merge_patch(samples.node(), {"metadata": {"namespace": "shop"}}),
        ["metadata.namespace: Forbidden: not allowed on this type"],
    ),
    # containers
    (samples.pod(containers=[]), ["spec.containers: Required value"]),
    (samples.pod(containers=[{"image": "x"}]), [f"{C0}.name: Required value"]),
    (samples.pod(containers=[{"name": "web"}]), [f"{C0}.image: Required value"]),
    (samples.pod(containers=[{"name": "W", "image": "x"}]), [f'{C0}.name: Invalid value: "W": {DNS_LABEL}']),
    (
        samples.pod(initContainers=[{"name": "web", "image": "x"}]),
        ['spec.initContainers[0].name: Duplicate value: "web"'],
    ),
    (container(volumeMounts=[{"name": "tmp"}]), [f'{C0}.volumeMounts[0].name: Not found: "tmp"']),
    (
        container(imagePullPolicy="Sometimes"),
        [
            (f'{C0}.imagePullPolicy: Unsupported value: "Sometimes": '
            'supported values: "Always", "IfNotPresent", "Never"')
        ],
    ),
    # ports
    (container(ports=[{}]), [f"{C0}.ports[0].containerPort: Required value"]),
    (
        container(ports=[{"containerPort": 70000}]),
        [f"{C0}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
    ),
    (
        container(ports=[{"containerPort": 80, "protocol": "HTTP"}]),
        [f'{C0}.ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"'],
    ),
    (
        container(ports=[{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]),
        [f'{C0}.ports[1].hostPort: Duplicate value: "TCP//80"'],
    ),
    # resources
    (
        resources(requests={"cpu": "-1"}),
        [f'{C0}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    (
        resources(requests={"cpu": "2"}, limits={"cpu": "1"}),
        [f'{C0}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ),
    (
        resources(requests={"cpus": "1"}),
        [
            f'{C0}.resources.requests[cpus]: Invalid value: "cpus": must be a standard resource type or fully qualified',
            f'{C0}.resources.requests[cpus]: Invalid value: "cpus": must be a standard resource for containers',
        ],
    ),
    (
        resources(requests={"pods": "1"}),
        [f'{C0}.resources.requests[pods]: Invalid value: "pods": must be a standard resource for containers'],
    ),
    (
        resources(requests={"hugepages-2Mi": "3Mi"}, limits={"hugepages-2Mi": "3Mi"}),
        [
            *(
                f'{C0}.resources.{part}[hugepages-2Mi]: Invalid value: "3Mi": '
                "3Mi is not positive integer multiple of hugepages-2Mi"
                for part in ("limits", "requests")
            ),
            f"{C0}.resources: Forbidden: HugePages require cpu or memory",
        ],
    ),
    (
        samples.pod(resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}),
        [
            f'spec.resources.{part}[nvidia.com/gpu]: Unsupported value: "nvidia.com/gpu": '
            'supported values: "cpu", "hugepages-", "memory"'
            for part in ("limits", "requests")
        ],
    ),
    (
        resources(requests={"nvidia.com/gpu": 1}),
        [f"{C0}.resources.limits: Required value: Limit must be set for non overcommitable resources"],
    ),
    (
        resources(limits={"nvidia.com/gpu": "500m"}),
        [
            f'{C0}.resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
            f'{C0}.resources.requests[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
        ],
    ),
    (
        resources(limits={"nvidia.com/gpu": 2}, requests={"nvidia.com/gpu": 1}),
        [f'{C0}.resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
    ),
    # where a pod may run
    (
        samples.pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        ["spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"],
    ),
    (
        samples.pod(tolerations=[{}]),
        [
            ('spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, '
            'which means "match all values and all keys"')
        ],
    ),
    (
        samples.pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "Pray"}]),
        [
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            ('spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Pray": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"'),
        ],
    ),
    (
        samples.pod(
            affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}}
        ),
        [
            ("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
            "Required value: can not be empty")
        ],
    ),
    (
        samples.pod(
            affinity={
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
            }
        ),
        [
            ("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
            "Required value: must have at least one node selector term")
        ],
    ),
    # config maps
    (samples.config_map(data={"..": "", "..x": "", ".": "", "k": ""}, binaryData={"k": "eA=="}), [
        "data[.]: Invalid value: \".\": must not be '.'",
        "data[..]: Invalid value: \"..\": must not be '..'",
        "data[..x]: Invalid value: \"..x\": must not start with '..'",
        'data[k]: Invalid value: "k": duplicate of key present in binaryData',
    ]),
    (samples.config_map(data={"k" * 254: ""}, binaryData={"a b": "eA=="}), [
        f'data[{"k" * 254}]: Invalid value: "{"k" * 254}": must be no more than 253 characters',
        ('binaryData[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '
        "'-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
        "'[-._a-zA-Z0-9]+')"),
    ]),
    (samples.config_map(data={"k": "x" * (1 << 20)}, binaryData={"b": "eA=="}), [
        "[]: Too long: may not be more than 1048576 bytes"
    ]),
    # the rest
    (
        samples.budget(minAvailable=1, maxUnavailable=1),
        [
            ('spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"web"}},"MaxUnavailable":1,'
            '"UnhealthyPodEvictionPolicy":null}: '
            "minAvailable and maxUnavailable cannot be both set")
        ],
    ),
    (
        samples.budget(minAvailable="half"),
        [
            ('spec.minAvailable: Invalid value: "half": a valid percent string must be a numeric string followed '
            "by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')")
        ],
    ),
    (
        merge_patch(samples.node(), {"spec": {"taints": [{"key": "a", "effect": "Never"}]}}),
        [
            ('metadata.taints[0].effect: Unsupported value: "Never": '
            'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"')
        ],
    ),
    (
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "p"},
            "value": 2_000_000_000,
        },
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    ),
    # wrong JSON types
    (
        samples.workload(replicas="three"),
        ['spec.replicas: Invalid value: "three": expected a whole number, got the text "three"'],
    ),
    (
        resources(requests={"cpu": ["1"]}),
        [
            ('spec.containers[0].resources.requests.cpu: Invalid value: ["1"]: '
            "expected a number or a text, got a list")
        ],
    ),
    (
        merge_patch(samples.pod(), {"metadata": {"labels": {"example.com/a": True}}}),
        ["metadata.labels[example.com/a]: Invalid value: true: expected a text, got true"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("obj", "expected"), CASES, ids=lambda value: value[0][:60] if isinstance(value, list) else ""
)
def test_rules_are_broken_in_the_servers_words(obj, expected):
    """Each rule names its field and says what is wrong as the API server says it."""
    assert problems(obj) == expected


JUNK = st.sampled_from(
    [None, True, -1, 2**70, 0.5, "", "x", "1%", [], [None], [5], {}, {"a": None}, [{}], [{"name": 5}]]
)


def places(value, path=()):
    yield path
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, member in members:
        yield from places(member, (*path, key))


@given(st.data())
@settings(max_examples=1000)
def test_junk_is_validated_and_never_crashes(data):
    """Whatever a field holds, defaulting and validation answer, for creating and for updating."""
    obj = copy.deepcopy(data.draw(st.sampled_from(samples.ALL)))
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    old = defaults(kind, copy.deepcopy(obj))
    # Places that only defaulting makes are hit, too.
    target = data.draw(st.sampled_from([obj, copy.deepcopy(old)]))
    path = data.draw(st.sampled_from([place for place in places(target) if place]))
    parent = target
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = data.draw(JUNK)
    found = defaults(kind, target)
    assert defaults(kind, found) == found
    assert all(str(error) for error in [*validate(kind, found), *validate(kind, found, old)])
