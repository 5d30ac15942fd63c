"""The shapes of the stored kinds: how strategic merge patches and server-side apply see their parts.

Source: Kubernetes v1.36, the ``patchStrategy``, ``patchMergeKey``, ``listType``, ``listMapKey`` and
``structType`` marks of the API types.
"""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.patches.merging import ATOMIC, PLAIN, SET, Shape, keyed, struct
from kubetide.objects.kinds import Kind

_METADATA = struct(ownerReferences=keyed("uid", ATOMIC), finalizers=SET)
_CONDITIONS = keyed("type")
# Claims of a container are merged by apply only.
_RESOURCES = struct(claims=Shape(list_type="map", keys=("name",)))

_ENV = struct(
    valueFrom=struct(
        fieldRef=ATOMIC,
        resourceFieldRef=ATOMIC,
        configMapKeyRef=ATOMIC,
        secretKeyRef=ATOMIC,
        fileKeyRef=ATOMIC,
    )
)
_CONTAINER = struct(
    ports=keyed("containerPort", PLAIN, "protocol", defaults={"protocol": "TCP"}),
    env=keyed("name", _ENV),
    volumeMounts=keyed("mountPath"),
    volumeDevices=keyed("devicePath"),
    resources=_RESOURCES,
)
_VOLUME = struct(
    csi=struct(nodePublishSecretRef=ATOMIC, secretRef=ATOMIC),
    ephemeral=struct(
        volumeClaimTemplate=struct(metadata=_METADATA, spec=struct(selector=ATOMIC, dataSource=ATOMIC))
    ),
)
_POD_SPEC = struct(
    volumes=keyed("name", _VOLUME),
    containers=keyed("name", _CONTAINER),
    initContainers=keyed("name", _CONTAINER),
    ephemeralContainers=keyed("name", _CONTAINER),
    imagePullSecrets=keyed("name", ATOMIC),
    hostAliases=keyed("ip"),
    topologySpreadConstraints=keyed("topologyKey", struct(labelSelector=ATOMIC), "whenUnsatisfiable"),
    schedulingGates=keyed("name"),
    resourceClaims=keyed("name"),
    nodeSelector=ATOMIC,
    resources=_RESOURCES,
    affinity=struct(
        nodeAffinity=struct(requiredDuringSchedulingIgnoredDuringExecution=ATOMIC),
    ),
)
_TEMPLATE = struct(metadata=_METADATA, spec=_POD_SPEC)
_STATUS = struct(conditions=_CONDITIONS)

_WEBHOOKS = keyed(
    "name", struct(namespaceSelector=ATOMIC, objectSelector=ATOMIC, matchConditions=keyed("name"))
)

_SPECS: dict[str, dict[str, Shape]] = {
    "pods": {
        "spec": _POD_SPEC,
        "status": struct(
            conditions=_CONDITIONS,
            podIPs=keyed("ip"),
            hostIPs=Shape(merge=True, merge_key="ip"),
            resourceClaimStatuses=keyed("name"),
        ),
    },
    "nodes": {
        "spec": struct(podCIDRs=SET),
        "status": struct(conditions=_CONDITIONS, addresses=keyed("type")),
    },
    "namespaces": {"status": _STATUS},
    "events": {"involvedObject": ATOMIC, "related": ATOMIC},
    "deployments.apps": {
        "spec": struct(selector=ATOMIC, template=_TEMPLATE),
        "status": _STATUS,
    },
    "replicasets.apps": {"spec": struct(selector=ATOMIC, template=_TEMPLATE), "status": _STATUS},
    "daemonsets.apps": {"spec": struct(selector=ATOMIC, template=_TEMPLATE), "status": _STATUS},
    "statefulsets.apps": {"spec": struct(selector=ATOMIC, template=_TEMPLATE), "status": _STATUS},
    "jobs.batch": {
        "spec": struct(selector=ATOMIC, template=_TEMPLATE),
        # Apply sees these conditions as one value, unlike those of the other kinds.
        "status": struct(conditions=Shape(merge=True, merge_key="type")),
    },
    "cronjobs.batch": {
        "spec": struct(
            jobTemplate=struct(metadata=_METADATA, spec=struct(selector=ATOMIC, template=_TEMPLATE))
        )
    },
    "horizontalpodautoscalers.autoscaling": {"spec": struct(scaleTargetRef=ATOMIC), "status": _STATUS},
    "poddisruptionbudgets.policy": {
        "spec": struct(selector=Shape(atomic=True, replace=True)),
        "status": _STATUS,
    },
    "resourceclaims.resource.k8s.io": {
        "status": struct(
            reservedFor=keyed("uid"),
            devices=Shape(
                items=struct(conditions=_CONDITIONS),
                list_type="map",
                keys=("driver", "device", "pool", "shareID"),
            ),
        )
    },
    "services": {
        "spec": struct(
            ports=keyed("port", PLAIN, "protocol", defaults={"protocol": "TCP"}),
            selector=ATOMIC,
        ),
        "status": _STATUS,
    },
    "serviceaccounts": {"secrets": keyed("name", ATOMIC)},
    "resourcequotas": {"spec": struct(scopeSelector=ATOMIC)},
    "networkpolicies.networking.k8s.io": {"spec": struct(podSelector=ATOMIC)},
    "rolebindings.rbac.authorization.k8s.io": {"roleRef": ATOMIC},
    "clusterrolebindings.rbac.authorization.k8s.io": {"roleRef": ATOMIC},
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": _WEBHOOKS},
    "validatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": _WEBHOOKS},
}

_SHAPES = {name: struct(metadata=_METADATA, **fields) for name, fields in _SPECS.items()}
_OTHER = struct(metadata=_METADATA)


def shape_of(kind: Kind[Any]) -> Shape:
    """Return the shape of a built-in kind's objects; of a kind without lists to merge, that of its metadata."""
    return _SHAPES.get(kind.resource, _OTHER)
