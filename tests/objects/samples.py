"""Small whole objects, as a person writes them."""

from __future__ import annotations


def pod(**spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "shop"},
        "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}], **spec},
    }


def template(**spec):
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx"}], **spec},
    }


def workload(kind="Deployment", **spec):
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec},
    }


def hpa(**spec):
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 10,
            **spec,
        },
    }


def budget(**spec):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def node(**status):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}, "status": status}


def config_map(**parts):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}, **parts}


def job(**spec):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "pi", "namespace": "shop"},
        "spec": {
            "template": {"spec": {"containers": [{"name": "pi", "image": "perl"}], "restartPolicy": "Never"}},
            **spec,
        },
    }


def cron_job(**spec):
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "shop"},
        "spec": {"schedule": "30 2 * * *", "jobTemplate": {"spec": job()["spec"]}, **spec},
    }


def volume(name="v1", **spec):
    body = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "csi.test", "volumeHandle": "h1"},
        **spec,
    }
    return _storage("v1", "PersistentVolume", name, spec={k: v for k, v in body.items() if v is not None})


def claim(name="data", **spec):
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, **spec}
    return {
        **_storage("v1", "PersistentVolumeClaim", name, spec=asked),
        "metadata": {"name": name, "namespace": "shop"},
    }


def storage_class(name="fast", **fields):
    return _storage("storage.k8s.io/v1", "StorageClass", name, **{"provisioner": "csi.test", **fields})


def resource_claim(name="gpu", request=None, **devices):
    asked = request or {"name": "one", "exactly": {"deviceClassName": "gpu.test"}}
    spec = {"devices": {"requests": [asked], **devices}}
    body = _storage("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)
    return {**body, "metadata": {"name": name, "namespace": "shop"}}


def resource_claim_template(name="gpu", **devices):
    claim = resource_claim(name, **devices)
    return {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}


def device_class(name="gpu.test", **spec):
    spec = {"selectors": [{"cel": {"expression": "device.driver == 'gpu.test'"}}], **spec}
    return _storage("resource.k8s.io/v1", "DeviceClass", name, spec=spec)


def resource_slice(name="n1-gpu", **spec):
    own = {
        "driver": "gpu.test",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n1",
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "a1"}}}],
    }
    spec = {key: value for key, value in {**own, **spec}.items() if value is not None}
    return _storage("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)


def csi_node(name="n1", **spec):
    return _storage("storage.k8s.io/v1", "CSINode", name, spec=spec)


def csi_driver(name="csi.test", **spec):
    return _storage("storage.k8s.io/v1", "CSIDriver", name, spec=spec)


def capacity(name="c1", **fields):
    own = {"storageClassName": "fast", "capacity": "100Gi", "nodeTopology": {"matchLabels": {"zone": "a"}}}
    body = _storage("storage.k8s.io/v1", "CSIStorageCapacity", name, **{**own, **fields})
    return {**body, "metadata": {"name": name, "namespace": "shop"}}


def attachment(name="a1", **spec):
    own = {"attacher": "csi.test", "nodeName": "n1", "source": {"persistentVolumeName": "v1"}}
    return _storage("storage.k8s.io/v1", "VolumeAttachment", name, spec={**own, **spec})


def _storage(version, kind, name, **fields):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


ALL = (
    pod(),
    pod(
        hostNetwork=True,
        initContainers=[{"name": "init", "image": "busybox", "resources": {"limits": {"cpu": "1"}}}],
        containers=[
            {
                "name": "web",
                "image": "nginx",
                "ports": [{"containerPort": 80, "name": "http"}],
                "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": 1, "memory": "1Gi"}},
            }
        ],
        resources={"limits": {"cpu": "2", "memory": "2Gi"}},
        tolerations=[{"operator": "Exists"}, {"key": "a", "effect": "NoExecute", "tolerationSeconds": 30}],
        nodeSelector={"kubernetes.io/os": "linux"},
        schedulingGates=[{"name": "example.com/gate"}],
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        volumes=[{"name": "tmp", "emptyDir": {}}],
    ),
    workload(),
    workload(strategy={"type": "Recreate"}, replicas=0),
    workload("ReplicaSet", replicas=3),
    workload("DaemonSet"),
    workload("StatefulSet", serviceName="web"),
    workload("StatefulSet", updateStrategy={"type": "OnDelete"}, podManagementPolicy="Parallel"),
    job(),
    job(completions=5, parallelism=2, completionMode="Indexed", ttlSecondsAfterFinished=0),
    cron_job(),
    cron_job(timeZone="Europe/Berlin", concurrencyPolicy="Forbid", startingDeadlineSeconds=60),
    hpa(),
    hpa(
        minReplicas=2,
        behavior={"scaleDown": {"stabilizationWindowSeconds": 60}},
        metrics=[
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "hits"},
                    "target": {"type": "AverageValue", "averageValue": "10"},
                },
            }
        ],
    ),
    budget(minAvailable="50%"),
    node(capacity={"cpu": "4", "memory": "16Gi", "pods": "110"}),
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    config_map(data={"a": "b"}, binaryData={"A-b_c.d": "eA=="}),
    config_map(data={"all": "x" * (1 << 20)}),
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    },
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "kube-system"},
        "spec": {"leaseDurationSeconds": 15},
    },
    volume(),
    volume(
        local={"path": "/disk"},
        csi=None,
        nodeAffinity={
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["a"]}]}
                ]
            }
        },
    ),
    claim(),
    claim(storageClassName="fast", volumeMode="Block", selector={"matchLabels": {"a": "b"}}),
    storage_class(),
    storage_class(
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
    ),
    csi_node(drivers=[{"name": "csi.test", "nodeID": "n1", "allocatable": {"count": 25}}]),
    csi_driver(),
    csi_driver(storageCapacity=True),
    capacity(),
    attachment(),
    resource_claim(),
    resource_claim(constraints=[{"requests": ["one"], "matchAttribute": "gpu.test/model"}]),
    resource_claim_template(),
    device_class(),
    device_class(extendedResourceName="test.com/gpu"),
    resource_slice(),
    resource_slice(nodeName=None, allNodes=True),
)
