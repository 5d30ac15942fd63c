from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objects import samples

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.rules.validation import validate
from kubetide.objects.kinds import KINDS
from kubetide.units.patch import merge_patch


def problems(obj, old=None):
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    before = None if old is None else defaults(kind, old)
    return [str(error) for error in validate(kind, defaults(kind, obj), before)]


def container(**fields):
    return samples.pod(containers=[{"name": "web", "image": "x", **fields}])


def resources(**fields):
    return container(resources=fields)


def metric(**fields):
    return samples.hpa(metrics=[fields])


def scale_down(**rules):
    return samples.hpa(behavior={"scaleDown": rules})


DNS_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
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
    # workloads
    (
        samples.workload(replicas=-1),
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        samples.workload(selector=None),
        [
            "spec.selector: Required value",
            'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
        ],
    ),
    (
        samples.workload(selector={}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    (
        samples.workload("DaemonSet", selector={}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"],
    ),
    (
        samples.workload(selector={"matchLabels": {"app": "db"}}),
        [
            ('spec.template.metadata.labels: Invalid value: {"app":"web"}: '
            "`selector` does not match template `labels`")
        ],
    ),
    (
        samples.workload(template=samples.template(restartPolicy="Never")),
        ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ),
    (
        samples.workload(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
        ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
    ),
    (
        samples.workload(strategy={"rollingUpdate": {"maxUnavailable": "150%"}}),
        ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "150%": must not be greater than 100%'],
    ),
    (
        samples.workload(strategy={"type": "Recreate", "rollingUpdate": {}}),
        ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    ),
    (
        samples.workload(progressDeadlineSeconds=30, minReadySeconds=30),
        ["spec.progressDeadlineSeconds: Invalid value: 30: must be greater than minReadySeconds"],
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
    # autoscalers
    (samples.hpa(maxReplicas=0, minReplicas=None), [
        "spec.maxReplicas: Required value: must be set and greater than 0",
        "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
    ]),
    (
        samples.hpa(minReplicas=5, maxReplicas=3),
        ["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"],
    ),
    (
        samples.hpa(minReplicas=0),
        [
            ("spec.metrics: Forbidden: must specify at least one Object or External metric "
            "to support scaling to zero replicas")
        ],
    ),
    (
        samples.hpa(scaleTargetRef={"apiVersion": "v1", "kind": "Deployment"}),
        [
            "spec.scaleTargetRef.name: Required value",
            'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group',
        ],
    ),
    (
        samples.hpa(minReplicas=-2, maxReplicas=-3),
        [
            "spec.minReplicas: Invalid value: -2: must be greater than or equal to 0",
            "spec.maxReplicas: Invalid value: -3: must be greater than or equal to 1",
            "spec.maxReplicas: Invalid value: -3: must be greater than or equal to `minReplicas`",
        ],
    ),
    (
        samples.hpa(scaleTargetRef={"apiVersion": "apps/v1/x", "kind": "Deployment", "name": "web"}),
        [
            ('spec.scaleTargetRef.apiVersion: Invalid value: "apps/v1/x": '
            "unexpected GroupVersion string: apps/v1/x")
        ],
    ),
    (
        scale_down(stabilizationWindowSeconds=3601),
        [
            ("spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: "
            "must be less than or equal to 3600")
        ],
    ),
    (
        scale_down(policies=[{"type": "Pods", "value": 1, "periodSeconds": 1801}]),
        [
            ("spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: "
            "must be less than or equal to 1800")
        ],
    ),
    (scale_down(policies=[]), ["spec.behavior.scaleDown.policies: Required value: must specify at least one Policy"]),
    (
        scale_down(selectPolicy="Fast"),
        [
            ('spec.behavior.scaleDown.selectPolicy: Unsupported value: "Fast": '
            'supported values: "Disabled", "Max", "Min"')
        ],
    ),
    (metric(type="Resource"), [
        "spec.metrics[0].resource: Required value: must populate information for the given metric source"
    ]),
    (
        metric(type="Resource", resource={"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 0}}),
        ["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
    ),
    (
        metric(type="Resource", resource={"name": "cpu", "target": {"type": "AverageValue", "averageValue": "0"}}),
        ['spec.metrics[0].resource.target.averageValue: Invalid value: "0": must be positive'],
    ),
    (
        metric(type="Resource", resource={"name": "cpu", "target": {"type": "Utilization"}}),
        [
            ("spec.metrics[0].resource.target.averageUtilization: Required value: "
            "must set either a target raw value or a target utilization")
        ],
    ),
    (metric(type="Pods", external={}), [
        "spec.metrics[0].pods: Required value: must populate information for the given metric source",
        "spec.metrics[0].external.metric.name: Required value: must specify a metric name",
        "spec.metrics[0].external.target.type: Required value: must specify a metric target type",
        ('spec.metrics[0].external.target.type: Invalid value: "": '
        "must be either Utilization, Value, or AverageValue"),
        ("spec.metrics[0].external.target.averageValue: Required value: "
        "must set either a target value for metric or a per-pod target"),
    ]),
    (
        metric(type="Object", object={
            "describedObject": {"apiVersion": "a/b/c", "kind": "Ingress", "name": "main"},
            "metric": {"name": "%a/b", "selector": {"matchExpressions": [{"key": "x", "operator": "Is"}]}},
            "target": {"type": "Value"},
        }),
        [
            ('spec.metrics[0].object.describedObject.apiVersion: Invalid value: "a/b/c": '
            "unexpected GroupVersion string: a/b/c"),
            'spec.metrics[0].object.metric.name: Invalid value: "%a/b": may not contain \'/\'',
            'spec.metrics[0].object.metric.name: Invalid value: "%a/b": may not contain \'%\'',
            ("spec.metrics[0].object.target.averageValue: Required value: "
            "must set either a target value or averageValue"),
        ],
    ),
    (
        scale_down(tolerance="-0.05", policies=[{"value": 1, "periodSeconds": 1}]),
        [
            ('spec.behavior.scaleDown.tolerance: Invalid value: "-50m": '
            "must be greater than or equal to 0"),
            ('spec.behavior.scaleDown.policies[0].type: Unsupported value: "": '
            'supported values: "Percent", "Pods"'),
        ],
    ),
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
    # workloads with state, and batch work
    (
        samples.workload("StatefulSet", podManagementPolicy="Fast"),
        ["spec.podManagementPolicy: Invalid value: \"Fast\": must be 'OrderedReady' or 'Parallel'"],
    ),
    (
        samples.workload("StatefulSet", updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
        [
            ('spec.updateStrategy.rollingUpdate: Invalid value: {"partition":1}: '
            "only allowed for updateStrategy 'RollingUpdate'")
        ],
    ),
    (
        samples.workload("StatefulSet", selector={}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"],
    ),
    (samples.job(completions=-1), ["spec.completions: Invalid value: -1: must be greater than or equal to 0"]),
    (
        samples.job(completionMode="Indexed", parallelism=2),
        ["spec.completions: Required value: when completion mode is Indexed"],
    ),
    (
        samples.job(template={"spec": {"containers": [{"name": "pi", "image": "perl"}]}}),
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    (
        samples.job(manualSelector=True),
        ["spec.selector: Required value"],
    ),
    (
        samples.cron_job(schedule="61 * * * *"),
        ['spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'],
    ),
    (
        samples.cron_job(schedule="TZ=UTC 0 * * * *"),
        [
            ('spec.schedule: Invalid value: "TZ=UTC 0 * * * *": '
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        ],
    ),
    (
        samples.cron_job(schedule="CRON_TZ=UTC 0 * * * *", timeZone="UTC"),
        [
            ('spec.schedule: Invalid value: "CRON_TZ=UTC 0 * * * *": '
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        ],
    ),
    (
        samples.cron_job(timeZone="Moon/Base"),
        ['spec.timeZone: Invalid value: "Moon/Base": unknown time zone Moon/Base'],
    ),
    (
        samples.cron_job(timeZone="Local"),
        [
            ('spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone '
            "as defined in https://www.iana.org/time-zones")
        ],
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


UPDATES = [
    (samples.pod(), {"spec": {"nodeName": "n1"}}, ["spec: Forbidden: pod updates may not change"]),
    (samples.pod(nodeName="n1"), {"spec": {"nodeName": "n2"}}, ["spec: Forbidden: pod updates may not change"]),
    (samples.pod(), {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}, []),
    (samples.pod(), {"spec": {"priority": 5}}, ["spec: Forbidden: pod updates may not change"]),
    (samples.pod(), {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, []),
    (
        samples.pod(tolerations=[{"key": "a", "operator": "Exists"}]),
        {"spec": {"tolerations": []}},
        ["spec.tolerations: Forbidden: existing toleration"],
    ),
    (samples.pod(schedulingGates=[{"name": "g"}]), {"spec": {"schedulingGates": [], "nodeSelector": {"a": "b"}}}, []),
    (
        samples.pod(),
        {"spec": {"schedulingGates": [{"name": "g"}]}},
        ["spec.schedulingGates: Forbidden: only deletion is allowed"],
    ),
    (samples.pod(), {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}, []),
    (samples.pod(), {"metadata": {"name": "web-2"}}, ['metadata.name: Invalid value: "web-2": field is immutable']),
    (samples.workload(), {"spec": {"replicas": 5}}, []),
    (
        samples.workload(),
        {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}},
        [
            ('spec.selector: Invalid value: {"matchLabels":{"app":"web"},'
            '"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable')
        ],
    ),
    (samples.workload("StatefulSet"), {"spec": {"replicas": 5, "minReadySeconds": 3}}, []),
    (
        samples.workload("StatefulSet"),
        {"spec": {"serviceName": "other"}},
        ["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "],
    ),
    (samples.job(completions=2), {"spec": {"parallelism": 5, "suspend": True}}, []),
    (samples.job(completions=2), {"spec": {"completions": 5}}, ["spec.completions: Invalid value: 5: field is immutable"]),
    (samples.job(), {"spec": {"template": {"spec": {"priority": 5}}}}, ["spec.template: Invalid value"]),
    (samples.cron_job(), {"spec": {"schedule": "0 * * * *", "suspend": True}}, []),
    (
        merge_patch(samples.node(), {"spec": {"providerID": "sim://a"}}),
        {"spec": {"providerID": "sim://b"}},
        ["spec.providerID: Forbidden"],
    ),
    (samples.node(), {"spec": {"providerID": "sim://b"}}, []),
    (
        merge_patch(samples.hpa(), {"spec": {"scaleTargetRef": {"apiVersion": "v1"}}}),
        {"spec": {"maxReplicas": 11}},
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("old", "change", "expected"), UPDATES)
def test_updates_change_only_what_may_change(old, change, expected):
    """Immutable fields are held, and what an update may do passes."""
    before = copy.deepcopy(old)
    found = list(dict.fromkeys(problems(merge_patch(old, change), old)))
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))
    assert old == before


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


@pytest.mark.parametrize(
    ("kind", "mounted", "expected"),
    [
        ("StatefulSet", "www", []),
        ("StatefulSet", "other", ["other"]),
        ("Deployment", "www", ["www"]),
    ],
)
def test_a_container_may_mount_claims_of_its_own_set(kind, mounted, expected):
    """A StatefulSet's claim templates are volumes of its pods; no other workload has any."""
    container = {"name": "web", "image": "app:1", "volumeMounts": [{"name": mounted, "mountPath": "/data"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    claims = [{"metadata": {"name": "www"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    obj = samples.workload(kind, template=template)
    if kind == "StatefulSet":
        obj["spec"]["volumeClaimTemplates"] = claims
    field = "spec.template.spec.containers[0].volumeMounts[0].name"
    assert problems(obj) == [f'{field}: Not found: "{name}"' for name in expected]
