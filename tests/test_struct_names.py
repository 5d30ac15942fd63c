"""Every field of every API type is filled by real JSON: no name is misspelt."""

from __future__ import annotations

import importlib
import pkgutil

import msgspec
import pytest
from tests.docs.samples import SAMPLES

import kubetide.objects
from kubetide.objects import resource, storage
from kubetide.objects.base import ApiStruct
from kubetide.objects.definition import CustomResourceDefinition
from kubetide.objects.hpa_v1 import HorizontalPodAutoscalerV1
from kubetide.objects.kinds import (
    CAPACITY_KINDS,
    ELASTIC_WORKLOADS,
    KINDS,
    LIMIT_RANGES,
    REPLICATION_CONTROLLERS,
    VPA_CHECKPOINTS,
    VPAS,
)
from kubetide.objects.node import Node
from kubetide.objects.workload import ReplicationController, Scale
from kubetide.ports import cloud, limits

VOLUME_KINDS = (
    storage.PersistentVolume,
    storage.PersistentVolumeClaim,
    storage.StorageClass,
    storage.CSINode,
    storage.CSIDriver,
    storage.CSIStorageCapacity,
    storage.VolumeAttachment,
)
MODELS = {name: kind.model for (_, name), kind in KINDS.items()} | {"Scale": Scale}
DEVICE_KINDS = (
    resource.DeviceClass,
    resource.ResourceSlice,
    resource.ResourceClaim,
    resource.ResourceClaimTemplate,
)
MODELS |= {model.__name__: model for model in (*VOLUME_KINDS, *DEVICE_KINDS)}
MODELS |= {kind.kind: kind.model for kind in CAPACITY_KINDS}
MODELS |= {kind.kind: kind.model for kind in (VPAS, VPA_CHECKPOINTS, LIMIT_RANGES, REPLICATION_CONTROLLERS)}
MODELS[ELASTIC_WORKLOADS.kind] = ELASTIC_WORKLOADS.model

OLD_AUTOSCALER = {
    "apiVersion": "autoscaling/v1",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 20,
        "targetCPUUtilizationPercentage": 60,
    },
    "status": {
        "observedGeneration": 3,
        "lastScaleTime": "2026-03-02T08:45:00Z",
        "currentReplicas": 4,
        "desiredReplicas": 5,
        "currentCPUUtilizationPercentage": 71,
    },
}

DEFINITION_NAMES = {
    "plural": "rollouts",
    "singular": "rollout",
    "shortNames": ["ro"],
    "kind": "Rollout",
    "listKind": "RolloutList",
    "categories": ["all"],
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rollouts.example.com"},
    "spec": {
        "group": "example.com",
        "names": DEFINITION_NAMES,
        "scope": "Namespaced",
        "preserveUnknownFields": True,
        "conversion": {"strategy": "None"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
                "subresources": {
                    "status": {"x": 1},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {
                        "name": "Age",
                        "type": "date",
                        "format": "date",
                        "description": "How old it is",
                        "priority": 1,
                        "jsonPath": ".metadata.creationTimestamp",
                    }
                ],
            }
        ],
    },
    "status": {
        "conditions": [{"type": "Established", "status": "True"}],
        "acceptedNames": DEFINITION_NAMES,
        "storedVersions": ["v1"],
    },
}

# Types of the Cloud port are recorded under our own names, not Kubernetes': camelCase, acronyms as there.
GROUP = {
    "id": "general",
    "minSize": 1,
    "maxSize": 9,
    "targetSize": 3,
    "instances": [
        {
            "providerID": "aws:///eu-west-1a/i-0abc",
            "state": "Creating",
            "managed": False,
            "error": {
                "errorClass": "OutOfResource",
                "errorCode": "InsufficientInstanceCapacity",
                "errorMessage": "none left",
                "cause": "OutOfCapacity",
            },
        }
    ],
    "template": {
        "slices": [{"metadata": {"name": "general-template-gpu"}}],
        "node": {"metadata": {"name": "general-template"}},
        "pods": [{"metadata": {"name": "kube-proxy"}}],
        "source": "catalogue",
    },
    "templateError": "no such type",
    "options": {
        "scaleDownUtilizationThreshold": 0.6,
        "scaleDownGpuUtilizationThreshold": 0.7,
        "scaleDownUnneededTime": "5m",
        "scaleDownUnreadyTime": "6m",
        "maxNodeProvisionTime": "20m",
        "maxNodeStartupTime": "21m",
        "ignoreDaemonsetsUtilization": True,
        "zeroOrMaxNodeScaling": True,
        "allowNonAtomicScaleUpToMax": True,
    },
    "pricePerHour": 0.107,
    "debug": "asg general",
    "exists": False,
    "autoprovisioned": True,
    "offerings": [
        {
            "instanceType": "m5.large",
            "zone": "eu-west-1a",
            "market": "spot",
            "share": 0.5,
            "pricePerHour": 0.04,
            "count": 3,
        }
    ],
    "warnings": ["tag x: not a quantity"],
    "stale": "throttled",
}
NEW_GROUP = {
    "id": "general",
    "minSize": 1,
    "maxSize": 9,
    "instanceType": "m5.large",
    "zones": ["eu-west-1a"],
    "market": "spot",
    "labels": {"team": "shop"},
    "taints": [{"key": "dedicated", "value": "shop", "effect": "NoSchedule"}],
}
LIMITS_OF_A_CLOUD = {"minimum": {"cpu": 4}, "maximum": {"cpu": 400}}


OLD_CONTROLLER = {
    "apiVersion": "v1",
    "kind": "ReplicationController",
    "metadata": {"name": "old"},
    "spec": {"replicas": 2, "selector": {"app": "old"}},
    "status": {"replicas": 2},
}


def api_structs():
    """Return all types with fields under ``kubetide.objects`` and in the Cloud port."""
    for module in pkgutil.iter_modules(kubetide.objects.__path__, "kubetide.objects."):
        importlib.import_module(module.name)
    found, left = [], [ApiStruct]
    while left:
        for struct in left.pop().__subclasses__():
            left.append(struct)
            if struct.__module__.startswith(("kubetide.objects.", cloud.__name__)):
                found.append(struct)
    return sorted(found, key=lambda struct: struct.__name__)


def filled(value, into):
    """Note which fields of each type hold something else than their default, all the way down."""
    if isinstance(value, msgspec.Struct):
        empty = msgspec.convert({"node": {}} if isinstance(value, cloud.NodeTemplate) else {}, type(value))
        for field in msgspec.structs.fields(value):
            own = getattr(value, field.name)
            if own != getattr(empty, field.name):
                into.setdefault(type(value), set()).add(field.name)
            filled(own, into)
    elif isinstance(value, (tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            filled(item, into)


@pytest.fixture(scope="module")
def seen():
    found = {}
    for sample in SAMPLES:
        filled(msgspec.convert(sample, MODELS[sample["kind"]]), found)
    filled(msgspec.convert(OLD_AUTOSCALER, HorizontalPodAutoscalerV1), found)
    filled(msgspec.convert(DEFINITION, CustomResourceDefinition), found)
    filled(msgspec.convert(OLD_CONTROLLER, ReplicationController), found)
    filled(msgspec.convert(GROUP, cloud.NodeGroup), found)
    filled(msgspec.convert(NEW_GROUP, cloud.NewGroup), found)
    filled(
        msgspec.convert({"new": NEW_GROUP, "group": GROUP, "takesLabels": False}, cloud.GroupCandidate), found
    )
    filled(msgspec.convert(LIMITS_OF_A_CLOUD, limits.ResourceLimits), found)
    filled(
        msgspec.convert(
            {"cpuHour": 0.1, "gibHour": 0.2, "storageGibHour": 0.01, "gpuHour": 1.0}, cloud.PodPrices
        ),
        found,
    )
    return found


@pytest.mark.parametrize("struct", api_structs(), ids=lambda struct: struct.__name__)
def test_every_field_is_filled_by_real_json(struct, seen):
    """Real JSON fills every field of the type; a field that stays empty has a name that nobody sends."""
    subtypes = [struct, *struct.__subclasses__()]
    read = set().union(*(seen.get(one, set()) for one in subtypes))
    assert [field.name for field in msgspec.structs.fields(struct) if field.name not in read] == []


def test_there_is_a_sample_of_every_kind():
    """Each kind of the registry has a sample, and so has each kind that is read without being served."""
    sampled = {(one["apiVersion"], one["kind"]) for one in SAMPLES}
    assert {*KINDS, ("autoscaling/v1", "Scale")} <= sampled
    assert {kind for _, kind in sampled} == MODELS.keys()


def test_a_misspelt_name_would_show():
    """A field that is decoded under a wrong name stays at its default; the test above finds that."""
    right, wrong = ({"spec": {name: "aws:///i-0abc"}} for name in ("providerID", "providerId"))
    assert msgspec.convert(right, Node).spec.provider_id == "aws:///i-0abc"
    assert msgspec.convert(wrong, Node).spec.provider_id == ""
