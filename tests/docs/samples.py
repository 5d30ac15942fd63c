"""One whole object of each kind as an API server sends it: every field that our structs read is filled.

Written by hand after the API reference of Kubernetes v1.36; not made from the structs, so that a
struct field with a wrong JSON name stays empty.
"""

from __future__ import annotations

from tests.docs.capacity_samples import capacity_samples
from tests.docs.elastic_samples import elastic_sample
from tests.docs.inert_samples import INERT_SAMPLES

META = {
    "name": "web-7d4b9c6f5-x2x7k",
    "generateName": "web-7d4b9c6f5-",
    "namespace": "shop",
    "uid": "0b1f2e3d-4c5b-6a79-8897-a6b5c4d3e2f1",
    "resourceVersion": "48151623",
    "generation": 4,
    "creationTimestamp": "2026-03-02T08:00:00Z",
    "deletionTimestamp": "2026-03-02T09:00:30Z",
    "deletionGracePeriodSeconds": 30,
    "labels": {"app": "web"},
    "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
    "finalizers": ["example.com/hold"],
    "ownerReferences": [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web-7d4b9c6f5",
            "uid": "5f0c2a1e-1111-4222-8333-944445555666",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ],
}

SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front", "edge"]}],
}

CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "kubelet is posting ready status",
    "lastTransitionTime": "2026-03-02T08:01:00Z",
    "lastHeartbeatTime": "2026-03-02T08:59:30Z",
}
DEPLOYMENT_CONDITION = {
    "type": "Available",
    "status": "True",
    "reason": "MinimumReplicasAvailable",
    "message": "Deployment has minimum availability.",
    "lastTransitionTime": "2026-03-02T08:01:00Z",
    "lastUpdateTime": "2026-03-02T08:02:00Z",
}

RESOURCES = {"requests": {"cpu": "250m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}

ZONE_A = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}

POD_AFFINITY_TERM = {
    "labelSelector": SELECTOR,
    "namespaceSelector": {"matchLabels": {"team": "shop"}},
    "namespaces": ["shop", "cart"],
    "topologyKey": "topology.kubernetes.io/zone",
}

POD_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": [POD_AFFINITY_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "podAffinityTerm": POD_AFFINITY_TERM}
    ],
}

CONTAINER = {
    "name": "web",
    "image": "registry.example/web:1.27",
    "resources": RESOURCES,
    "ports": [
        {"name": "http", "containerPort": 8080, "hostPort": 80, "hostIP": "10.0.0.7", "protocol": "TCP"}
    ],
    "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
    "restartPolicy": "Always",
    "restartPolicyRules": [
        {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    ],
    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
}

POD_SPEC = {
    "containers": [CONTAINER],
    "initContainers": [{**CONTAINER, "name": "proxy"}],
    "resources": RESOURCES,
    "overhead": {"cpu": "10m", "memory": "16Mi"},
    "nodeName": "ip-10-0-0-7",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
                        ],
                        "matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": ["ip-10-0-0-7"]}
                        ],
                    }
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 10,
                    "preference": {
                        "matchExpressions": [{"key": "example.com/disk", "operator": "In", "values": ["ssd"]}]
                    },
                }
            ],
        },
        "podAffinity": POD_AFFINITY,
        "podAntiAffinity": POD_AFFINITY,
    },
    "tolerations": [
        {
            "key": "node.kubernetes.io/not-ready",
            "operator": "Equal",
            "value": "yes",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
    ],
    "topologySpreadConstraints": [
        {
            "topologyKey": "topology.kubernetes.io/zone",
            "maxSkew": 2,
            "minDomains": 3,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
            "matchLabelKeys": ["pod-template-hash"],
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Ignore",
        }
    ],
    "volumes": [
        {"name": "scratch", "emptyDir": {"medium": "Memory"}},
        {"name": "logs", "hostPath": {"path": "/var/log"}},
        {
            "name": "kube-api-access-x2x7k",
            "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
        },
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
        {"name": "gce", "gcePersistentDisk": {"pdName": "disk-1", "readOnly": True}},
        {"name": "aws", "awsElasticBlockStore": {"volumeID": "vol-1", "fsType": "ext4"}},
        {"name": "iscsi", "iscsi": {"iqn": "iqn.2026-01.com.example:disk", "lun": 0, "readOnly": True}},
        {
            "name": "rbd",
            "rbd": {"monitors": ["10.0.0.1:6789"], "pool": "kube", "image": "web", "readOnly": True},
        },
        {"name": "model", "image": {"reference": "registry.example/model:3", "pullPolicy": "IfNotPresent"}},
    ],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu-1", "resourceClaimTemplateName": "one-gpu"}],
    "priority": 1000,
    "priorityClassName": "high",
    "schedulerName": "default-scheduler",
    "schedulingGates": [{"name": "example.com/quota"}],
    "hostNetwork": True,
    "hostUsers": False,
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
}

CONTAINER_STATUS = {
    "name": "web",
    "ready": True,
    "restartCount": 2,
    "state": {"running": {"startedAt": "2026-03-02T08:31:00Z"}},
    "lastState": {
        "waiting": {"reason": "CrashLoopBackOff"},
        "terminated": {
            "exitCode": 137,
            "reason": "OOMKilled",
            "startedAt": "2026-03-02T08:00:05Z",
            "finishedAt": "2026-03-02T08:30:00Z",
        },
    },
    "resources": RESOURCES,
    "allocatedResources": {"cpu": "250m", "memory": "128Mi"},
}

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": META,
    "spec": POD_SPEC,
    "status": {
        "phase": "Running",
        "conditions": [CONDITION],
        "startTime": "2026-03-02T08:00:05Z",
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "web-7d4b9c6f5-x2x7k-gpu-4kk2z"}],
        "nominatedNodeName": "ip-10-0-0-8",
        "reason": "Evicted",
        "containerStatuses": [CONTAINER_STATUS],
        "initContainerStatuses": [CONTAINER_STATUS],
        "resources": RESOURCES,
        "allocatedResources": {"cpu": "260m", "memory": "144Mi"},
    },
}

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "ip-10-0-0-7", "labels": {"kubernetes.io/hostname": "ip-10-0-0-7"}},
    "spec": {
        "podCIDR": "10.244.1.0/24",
        "podCIDRs": ["10.244.1.0/24"],
        "providerID": "aws:///eu-west-1a/i-0abc",
        "unschedulable": True,
        "taints": [
            {
                "key": "ToBeDeletedByClusterAutoscaler",
                "value": "1772442000",
                "effect": "NoSchedule",
                "timeAdded": "2026-03-02T09:00:00Z",
            }
        ],
    },
    "status": {
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        "allocatable": {"cpu": "3920m", "memory": "15Gi", "pods": "110"},
        "conditions": [CONDITION],
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.7"},
            {"type": "Hostname", "address": "ip-10-0-0-7"},
        ],
        "declaredFeatures": ["GuaranteedQoSPodCPUResize"],
        "images": [{"names": ["registry.example/web:1.27"], "sizeBytes": 157286400}],
    },
}

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": POD_SPEC}
WORKLOAD_STATUS = {
    "observedGeneration": 4,
    "replicas": 3,
    "readyReplicas": 2,
    "availableReplicas": 2,
    "collisionCount": 1,
    "conditions": [DEPLOYMENT_CONDITION],
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": META,
    "spec": {
        "replicas": 3,
        "selector": SELECTOR,
        "template": TEMPLATE,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        "minReadySeconds": 5,
        "paused": True,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "status": {**WORKLOAD_STATUS, "updatedReplicas": 3, "unavailableReplicas": 1},
}
REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": META,
    "spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE, "minReadySeconds": 5},
    "status": {**WORKLOAD_STATUS, "fullyLabeledReplicas": 3},
}
DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": META,
    "spec": {
        "selector": SELECTOR,
        "template": TEMPLATE,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "minReadySeconds": 5,
        "revisionHistoryLimit": 10,
    },
    "status": {
        "observedGeneration": 4,
        "currentNumberScheduled": 7,
        "desiredNumberScheduled": 8,
        "numberReady": 6,
        "numberAvailable": 5,
        "numberUnavailable": 3,
        "numberMisscheduled": 1,
        "updatedNumberScheduled": 4,
    },
}
STATEFUL_SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": META,
    "spec": {
        "replicas": 3,
        "selector": SELECTOR,
        "template": TEMPLATE,
        "serviceName": "web",
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 2}},
        "ordinals": {"start": 5},
        "minReadySeconds": 5,
        "revisionHistoryLimit": 10,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"},
    },
    "status": {
        "observedGeneration": 4,
        "replicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "currentReplicas": 1,
        "updatedReplicas": 2,
        "currentRevision": "web-7d4b9c6f5",
        "updateRevision": "web-5c689d88bb",
        "collisionCount": 1,
        "conditions": [CONDITION],
    },
}
CONTROLLER_REVISION = {
    "apiVersion": "apps/v1",
    "kind": "ControllerRevision",
    "metadata": META,
    "data": {"spec": {"template": {"$patch": "replace"}}},
    "revision": 2,
}
JOB_SPEC = {
    "parallelism": 2,
    "completions": 5,
    "completionMode": "Indexed",
    "activeDeadlineSeconds": 600,
    "backoffLimit": 4,
    "selector": SELECTOR,
    "manualSelector": True,
    "template": TEMPLATE,
    "ttlSecondsAfterFinished": 100,
    "suspend": True,
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": META,
    "spec": JOB_SPEC,
    "status": {
        "conditions": [CONDITION],
        "startTime": "2026-03-02T08:00:00Z",
        "completionTime": "2026-03-02T08:10:00Z",
        "active": 2,
        "ready": 1,
        "terminating": 1,
        "succeeded": 2,
        "failed": 1,
        "completedIndexes": "0,2",
        "uncountedTerminatedPods": {"succeeded": ["0b1f2e3d"], "failed": ["4c5b6a79"]},
    },
}
CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": META,
    "spec": {
        "schedule": "*/5 * * * *",
        "timeZone": "Europe/Berlin",
        "startingDeadlineSeconds": 200,
        "concurrencyPolicy": "Forbid",
        "suspend": True,
        "jobTemplate": {"metadata": {"labels": {"app": "web"}}, "spec": JOB_SPEC},
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "status": {
        "active": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "namespace": "shop",
                "name": "web-29187365",
                "uid": "0b1f2e3d-4c5b-6a79-8897-a6b5c4d3e2f1",
                "resourceVersion": "48151700",
            }
        ],
        "lastScheduleTime": "2026-03-02T08:05:00Z",
        "lastSuccessfulTime": "2026-03-02T08:06:00Z",
    },
}
SCALE = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": META,
    "spec": {"replicas": 5},
    "status": {"replicas": 4, "selector": "app=web"},
}

TARGET = {"type": "Utilization", "averageUtilization": 60, "averageValue": "500m", "value": "10"}
CURRENT = {"averageUtilization": 55, "averageValue": "400m", "value": "9"}
IDENTIFIER = {"name": "requests_per_second", "selector": SELECTOR}
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main-route"}
HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": META,
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 20,
        "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": TARGET}},
            {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "web", "target": TARGET},
            },
            {"type": "Pods", "pods": {"metric": IDENTIFIER, "target": TARGET}},
            {
                "type": "Object",
                "object": {"describedObject": INGRESS, "metric": IDENTIFIER, "target": TARGET},
            },
            {"type": "External", "external": {"metric": IDENTIFIER, "target": TARGET}},
        ],
        "behavior": {
            direction: {
                "stabilizationWindowSeconds": 120,
                "selectPolicy": "Max",
                "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                "tolerance": "0.05",
            }
            for direction in ("scaleUp", "scaleDown")
        },
    },
    "status": {
        "observedGeneration": 1,
        "lastScaleTime": "2026-03-02T08:30:00Z",
        "currentReplicas": 4,
        "desiredReplicas": 5,
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu", "current": CURRENT}},
            {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "web", "current": CURRENT},
            },
            {"type": "Pods", "pods": {"metric": IDENTIFIER, "current": CURRENT}},
            {
                "type": "Object",
                "object": {"describedObject": INGRESS, "metric": IDENTIFIER, "current": CURRENT},
            },
            {"type": "External", "external": {"metric": IDENTIFIER, "current": CURRENT}},
        ],
        "conditions": [CONDITION],
    },
}

BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": META,
    "spec": {
        "minAvailable": "50%",
        "maxUnavailable": 1,
        "selector": SELECTOR,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    },
    "status": {
        "observedGeneration": 2,
        "disruptionsAllowed": 1,
        "currentHealthy": 4,
        "desiredHealthy": 3,
        "expectedPods": 5,
        "conditions": [CONDITION],
        "disruptedPods": {"web-7d4b9c6f5-x2x7k": "2026-03-02T09:00:00Z"},
    },
}

EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": META,
    "type": "Normal",
    "reason": "SuccessfulRescale",
    "message": "New size: 5; reason: cpu resource utilization (percentage of request) above target",
    "count": 3,
    "involvedObject": {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "namespace": "shop",
        "name": "web",
        "uid": "0b1f2e3d-4c5b-6a79-8897-a6b5c4d3e2f1",
        "resourceVersion": "48151600",
        "fieldPath": "spec.containers{web}",
    },
    "source": {"component": "horizontal-pod-autoscaler", "host": "ip-10-0-0-1"},
    "firstTimestamp": "2026-03-02T08:30:00Z",
    "lastTimestamp": "2026-03-02T08:45:00Z",
}

USAGE = {"cpu": "137946n", "memory": "24416Ki"}

WEBHOOK = {
    "name": "pods.webhooks.example.com",
    "clientConfig": {
        "url": "https://127.0.0.1:8443/mutate",
        "service": {"namespace": "shop", "name": "hooks", "path": "/mutate", "port": 8443},
        "caBundle": "LS0tLS1CRUdJTg==",
    },
    "rules": [
        {
            "operations": ["CREATE"],
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "resources": ["deployments"],
            "scope": "Namespaced",
        }
    ],
    "failurePolicy": "Ignore",
    "matchPolicy": "Exact",
    "namespaceSelector": SELECTOR,
    "objectSelector": SELECTOR,
    "sideEffects": "None",
    "timeoutSeconds": 5,
    "admissionReviewVersions": ["v1"],
    "matchConditions": [{"name": "not-system", "expression": "true"}],
}

CEL = [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]
DEVICE_REQUEST = {
    "deviceClassName": "gpu",
    "selectors": CEL,
    "allocationMode": "ExactCount",
    "count": 2,
    "tolerations": [{"key": "broken", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}],
    "capacity": {"requests": {"memory": "10Gi"}},
}
CLAIM_SPEC = {
    "devices": {
        "requests": [
            {"name": "one", "exactly": {**DEVICE_REQUEST, "adminAccess": True}},
            {"name": "any", "firstAvailable": [{"name": "big", **DEVICE_REQUEST}]},
        ],
        "constraints": [
            {"requests": ["one"], "matchAttribute": "gpu.example.com/numa"},
            {"requests": ["any"], "distinctAttribute": "gpu.example.com/card"},
        ],
    }
}
ALLOCATED = {"driver": "gpu.example.com", "pool": "ip-10-0-0-8", "device": "gpu-0"}
SHARE = "5a0c8f0e-7a3b-4a55-9d1c-0c9f4f6f5f10"
NODE_8 = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["ip-10-0-0-8"]}]}
    ]
}
DEVICES = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": META,
        "spec": {"selectors": CEL, "extendedResourceName": "example.com/gpu"},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": META,
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "ip-10-0-0-8", "generation": 3, "resourceSliceCount": 2},
            "nodeName": "ip-10-0-0-8",
            "nodeSelector": NODE_8,
            "allNodes": True,
            "perDeviceNodeSelection": True,
            "sharedCounters": [{"name": "card-0", "counters": {"memory": {"value": "80Gi"}}}],
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {
                        "model": {"string": "A100"},
                        "numa": {"int": 1},
                        "ecc": {"bool": True},
                        "driverVersion": {"version": "2.1.0"},
                    },
                    "capacity": {
                        "memory": {
                            "value": "80Gi",
                            "requestPolicy": {
                                "default": "10Gi",
                                "validValues": ["10Gi", "20Gi"],
                                "validRange": {"min": "10Gi", "max": "40Gi", "step": "10Gi"},
                            },
                        }
                    },
                    "consumesCounters": [{"counterSet": "card-0", "counters": {"memory": {"value": "40Gi"}}}],
                    "nodeName": "ip-10-0-0-8",
                    "nodeSelector": NODE_8,
                    "allNodes": True,
                    "taints": [{"key": "broken", "value": "yes", "effect": "NoSchedule"}],
                    "bindsToNode": True,
                    "bindingConditions": ["example.com/attached"],
                    "bindingFailureConditions": ["example.com/failed"],
                    "allowMultipleAllocations": True,
                }
            ],
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": META,
        "spec": CLAIM_SPEC,
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {
                            **ALLOCATED,
                            "request": "one",
                            "adminAccess": True,
                            "bindingConditions": ["example.com/attached"],
                            "bindingFailureConditions": ["example.com/failed"],
                            "shareID": SHARE,
                            "consumedCapacity": {"memory": "10Gi"},
                        }
                    ]
                },
                "nodeSelector": NODE_8,
                "allocationTimestamp": "2026-03-02T08:00:00Z",
            },
            "reservedFor": [
                {
                    "apiGroup": "scheduling.k8s.io",
                    "resource": "pods",
                    "name": "web-7d4b9c6f5-x2x7k",
                    "uid": META["uid"],
                }
            ],
            "devices": [{**ALLOCATED, "shareID": SHARE, "conditions": [CONDITION]}],
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": META,
        "spec": {"spec": CLAIM_SPEC},
    },
]

_BOOST = {"cpu": {"type": "Factor", "factor": 2, "quantity": "500m", "durationSeconds": 30}}
_AMOUNTS = {"cpu": "250m", "memory": "262144k"}
VERTICAL = (
    {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": META,
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {
                "updateMode": "InPlaceOrRecreate",
                "minReplicas": 1,
                "evictionRequirements": [
                    {"resources": ["cpu", "memory"], "changeRequirement": "TargetHigherThanRequests"}
                ],
                "evictAfterOOMSeconds": 300,
            },
            "resourcePolicy": {
                "containerPolicies": [
                    {
                        "containerName": "*",
                        "mode": "Auto",
                        "minAllowed": {"cpu": "100m"},
                        "maxAllowed": {"memory": "4Gi"},
                        "controlledResources": ["cpu", "memory"],
                        "controlledValues": "RequestsOnly",
                        "oomBumpUpRatio": "1.5",
                        "oomMinBumpUp": "200Mi",
                        "memoryAggregationIntervalSeconds": 3600,
                        "memoryAggregationIntervalCount": 4,
                        "startupBoost": _BOOST,
                    }
                ]
            },
            "recommenders": [{"name": "default"}],
            "startupBoost": _BOOST,
        },
        "status": {
            "recommendation": {
                "containerRecommendations": [
                    {
                        "containerName": "web",
                        "target": _AMOUNTS,
                        "lowerBound": _AMOUNTS,
                        "upperBound": _AMOUNTS,
                        "uncappedTarget": _AMOUNTS,
                    }
                ]
            },
            "conditions": [CONDITION],
            "observedGeneration": 3,
        },
    },
    {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": META,
        "spec": {"vpaObjectName": "web", "containerName": "web"},
        "status": {
            "lastUpdateTime": "2026-03-02T08:31:00Z",
            "version": "v3",
            "cpuHistogram": {
                "referenceTimestamp": "2026-03-02T00:00:00Z",
                "bucketWeights": {"11": 10000, "56": 6},
                "totalWeight": 988.6,
            },
            "memoryHistogram": {"referenceTimestamp": "2026-03-03T00:00:00Z"},
            "firstSampleStart": "2026-03-01T08:31:00Z",
            "lastSampleStart": "2026-03-02T08:31:00Z",
            "totalSamplesCount": 1440,
        },
    },
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": META,
        "spec": {
            "limits": [
                {
                    "type": "Container",
                    "max": {"cpu": "4"},
                    "min": {"cpu": "50m"},
                    "default": {"cpu": "500m"},
                    "defaultRequest": {"cpu": "100m"},
                    "maxLimitRequestRatio": {"cpu": "4"},
                }
            ]
        },
    },
    {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": META,
        "spec": {
            "replicas": 3,
            "selector": {"app": "web"},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD_SPEC},
            "minReadySeconds": 5,
        },
        "status": {"replicas": 3},
    },
)

HPC = {
    "apiVersion": "autoscaling.cloud.tencent.com/v1",
    "kind": "HorizontalPodCronscaler",
    "metadata": META,
    "spec": {
        "scaleTarget": {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "name": "web",
            "namespace": "shop",
        },
        "crons": [
            {
                "name": "morning",
                "schedule": "0 30 8 * * 1-5",
                "targetSize": 5,
                "minSize": 2,
                "maxSize": 20,
                "excludeDates": ["* * * 1-7 10 *"],
            }
        ],
    },
    "status": {"lastScheduleTime": "2026-03-02T08:30:00Z"},
}
CRON_HPA = {
    "apiVersion": "autoscaling.alibabacloud.com/v1beta1",
    "kind": "CronHorizontalPodAutoscaler",
    "metadata": META,
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "excludeDates": ["* * * 15 11 *"],
        "jobs": [{"name": "up", "schedule": "0 30 8 * * *", "targetSize": 5, "runOnce": True}],
    },
    "status": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "excludeDates": ["* * * 15 11 *"],
        "conditions": [
            {
                "name": "up",
                "schedule": "0 30 8 * * *",
                "targetSize": 5,
                "runOnce": True,
                "state": "Succeed",
                "lastProbeTime": "2026-03-02T08:30:00Z",
                "message": "cron hpa job up executed successfully. current replicas:2, desired replicas:5.",
            }
        ],
    },
}
TKESTACK_CRON_HPA = {
    "apiVersion": "extensions.tkestack.io/v1",
    "kind": "CronHPA",
    "metadata": META,
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "crons": [{"schedule": "30 8 * * *", "targetReplicas": 5}],
    },
    "status": {"lastScheduleTime": "2026-03-02T08:30:05Z"},
}
SCALED_OBJECT = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": META,
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "pollingInterval": 30,
        "cooldownPeriod": 300,
        "initialCooldownPeriod": 60,
        "idleReplicaCount": 0,
        "minReplicaCount": 1,
        "maxReplicaCount": 20,
        "triggers": [
            {
                "type": "cron",
                "name": "day",
                "metricType": "AverageValue",
                "metadata": {
                    "timezone": "Europe/Berlin",
                    "start": "30 8 * * *",
                    "end": "0 20 * * *",
                    "desiredReplicas": "5",
                },
                "authenticationRef": {"name": "queue"},
                "useCachedMetrics": True,
            }
        ],
        "fallback": {"failureThreshold": 3, "replicas": 6},
        "advanced": {"restoreToOriginalReplicaCount": False},
    },
    "status": {
        "lastActiveTime": "2026-03-02T08:30:00Z",
        "externalMetricNames": ["s0-cron-Europe-Berlin-308xxx-020xxx"],
        "health": {"s0-cron-Europe-Berlin-308xxx-020xxx": {"numberOfFailures": 0, "status": "Happy"}},
    },
}
SAMPLES = (
    *INERT_SAMPLES,
    *capacity_samples(META, TEMPLATE),
    elastic_sample(META, (HPA, VERTICAL[0])),
    POD,
    NODE,
    DEPLOYMENT,
    REPLICA_SET,
    DAEMON_SET,
    STATEFUL_SET,
    CONTROLLER_REVISION,
    JOB,
    CRON_JOB,
    HPC,
    CRON_HPA,
    TKESTACK_CRON_HPA,
    SCALED_OBJECT,
    SCALE,
    HPA,
    BUDGET,
    EVENT,
    {"apiVersion": "v1", "kind": "Namespace", "metadata": META, "status": {"phase": "Terminating"}},
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": META,
        "data": {"status": "time: 2026-03-02"},
        "binaryData": {"logo": "iVBORw0KGgo="},
        "immutable": True,
    },
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": META,
        "spec": {
            "holderIdentity": "ip-10-0-0-7",
            "leaseDurationSeconds": 40,
            "acquireTime": "2026-03-02T08:00:00.000000Z",
            "renewTime": "2026-03-02T08:59:50.000000Z",
            "leaseTransitions": 2,
        },
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": META,
        "value": 1000,
        "globalDefault": True,
        "preemptionPolicy": "Never",
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": META,
        "webhooks": [{**WEBHOOK, "reinvocationPolicy": "IfNeeded"}],
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": META,
        "webhooks": [WEBHOOK],
    },
    {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": META,
        "timestamp": "2026-03-02T08:59:45Z",
        "window": "15.4s",
        "containers": [{"name": "web", "usage": USAGE}],
    },
    {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "NodeMetrics",
        "metadata": META,
        "timestamp": "2026-03-02T08:59:45Z",
        "window": "15.4s",
        "usage": USAGE,
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": META,
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {
                "namespace": "shop",
                "name": "data-web-0",
                "uid": "c0ffee00-1111-4222-8333-94444555566",
            },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "standard",
            "volumeMode": "Filesystem",
            "volumeAttributesClassName": "gold",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [ZONE_A]}]}},
            "csi": {"driver": "csi.example.com", "volumeHandle": "vol-1"},
        },
        "status": {"phase": "Bound"},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": META,
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "selector": SELECTOR,
            "resources": {"requests": {"storage": "5Gi"}, "limits": {"storage": "10Gi"}},
            "volumeName": "pv-1",
            "storageClassName": "standard",
            "volumeMode": "Filesystem",
            "volumeAttributesClassName": "gold",
        },
        "status": {"phase": "Bound", "capacity": {"storage": "5Gi"}},
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": META,
        "provisioner": "csi.example.com",
        "reclaimPolicy": "Retain",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [
            {"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["a", "b"]}]}
        ],
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": META,
        "spec": {
            "drivers": [
                {
                    "name": "csi.example.com",
                    "nodeID": "ip-10-0-0-7",
                    "topologyKeys": ["topology.kubernetes.io/zone"],
                    "allocatable": {"count": 25},
                }
            ]
        },
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": META,
        "spec": {
            "volumeLifecycleModes": ["Persistent"],
            "storageCapacity": True,
            "preventPodSchedulingIfMissing": True,
        },
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": META,
        "storageClassName": "standard",
        "capacity": "100Gi",
        "maximumVolumeSize": "50Gi",
        "nodeTopology": SELECTOR,
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": META,
        "spec": {
            "attacher": "csi.example.com",
            "nodeName": "ip-10-0-0-7",
            "source": {"persistentVolumeName": "pv-1"},
        },
    },
    *DEVICES,
    *VERTICAL,
)
"""By kind, top-level objects."""
