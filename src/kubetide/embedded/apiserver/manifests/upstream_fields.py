"""Names of fields that upstream has and our structs do not read.

For a type in this table the known names are complete (v1.36), so any other name is a mistake. For
other types only a name that is nearly one of theirs is taken for one.
"""

from __future__ import annotations

from kubetide.objects import (
    batch,
    hpa,
    inert,
    meta,
    node,
    pod,
    policy,
    quota,
    rbac,
    resource,
    service,
    statefulset,
    storage,
    webhooks,
    workload,
)

_VOLUME_SOURCES = (
    "azureDisk azureFile cephfs cinder configMap csi downwardAPI fc flexVolume flocker "
    "gitRepo glusterfs nfs photonPersistentDisk portworxVolume quobyte scaleIO secret "
    "storageos vsphereVolume"
)

UPSTREAM_FIELDS: dict[type, frozenset[str]] = {
    owner: frozenset(names.split())
    for owner, names in {
        meta.ObjectMeta: "managedFields selfLink",
        service.Service: "status",
        service.ServiceSpec: (
            "allocateLoadBalancerNodePorts clusterIP clusterIPs externalIPs externalName externalTrafficPolicy "
            "healthCheckNodePort internalTrafficPolicy ipFamilies ipFamilyPolicy loadBalancerClass loadBalancerIP "
            "loadBalancerSourceRanges ports publishNotReadyAddresses sessionAffinity sessionAffinityConfig "
            "trafficDistribution type"
        ),
        inert.Secret: "data immutable stringData type",
        inert.ServiceAccount: "automountServiceAccountToken imagePullSecrets secrets",
        quota.ResourceQuota: "",
        quota.ResourceQuotaSpec: "hard",
        quota.ResourceQuotaStatus: "",
        quota.ScopeSelector: "",
        quota.ScopedResourceSelectorRequirement: "",
        inert.Ingress: "spec status",
        inert.IngressClass: "spec",
        inert.NetworkPolicy: "spec",
        rbac.Role: "",
        rbac.RoleBinding: "",
        rbac.ClusterRole: "",
        rbac.ClusterRoleBinding: "",
        rbac.PolicyRule: "",
        rbac.AggregationRule: "",
        rbac.Subject: "",
        rbac.RoleRef: "",
        meta.LabelSelector: "",
        meta.LabelSelectorRequirement: "",
        meta.OwnerReference: "",
        pod.PodSpec: (
            "activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks "
            "ephemeralContainers hostAliases hostIPC hostPID hostname hostnameOverride imagePullSecrets os "
            "preemptionPolicy readinessGates runtimeClassName securityContext serviceAccount "
            "serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain workloadRef schedulingGroup"
        ),
        pod.Container: (
            "args command env envFrom imagePullPolicy lifecycle livenessProbe readinessProbe "
            "securityContext startupProbe stdin stdinOnce terminationMessagePath "
            "terminationMessagePolicy tty volumeDevices workingDir"
        ),
        pod.ContainerPort: "",
        pod.ResourceRequirements: "claims",
        pod.Toleration: "",
        pod.NodeAffinity: "",
        pod.PreferredSchedulingTerm: "",
        pod.PodAffinity: "",
        pod.WeightedPodAffinityTerm: "",
        pod.PodAffinityTerm: "matchLabelKeys mismatchLabelKeys",
        pod.Affinity: "",
        pod.NodeSelector: "",
        pod.NodeSelectorTerm: "",
        pod.NodeSelectorRequirement: "",
        pod.TopologySpreadConstraint: "",
        pod.Volume: _VOLUME_SOURCES,
        pod.EmptyDirVolume: "sizeLimit",
        pod.PersistentVolumeClaimVolume: "readOnly",
        pod.GceDisk: "fsType partition",
        pod.AwsDisk: "fsType partition readOnly",
        pod.IscsiDisk: (
            "chapAuthDiscovery chapAuthSession fsType initiatorName iscsiInterface lun portals secretRef targetPortal"
        ),
        pod.ImageVolume: "pullPolicy",
        pod.RbdImage: "fsType keyring secretRef user",
        pod.PodResourceClaim: "",
        pod.ContainerRestartRule: "exitCodes",
        pod.VolumeMount: "mountPath mountPropagation readOnly recursiveReadOnly subPath subPathExpr",
        pod.SchedulingGate: "",
        pod.PodTemplate: "",
        node.NodeSpec: "configSource externalID podCIDR podCIDRs",
        node.Taint: "",
        workload.DeploymentSpec: "",
        workload.DeploymentStrategy: "",
        workload.RollingUpdate: "",
        workload.ReplicaSetSpec: "",
        workload.DaemonSetSpec: "",
        statefulset.StatefulSetSpec: "",
        statefulset.ClaimRetentionPolicy: "",
        statefulset.StatefulSetUpdateStrategy: "",
        statefulset.StatefulSetRollingUpdate: "",
        statefulset.StatefulSetOrdinals: "",
        batch.JobSpec: (
            "backoffLimitPerIndex managedBy maxFailedIndexes podFailurePolicy podReplacementPolicy successPolicy"
        ),
        batch.CronJobSpec: "",
        batch.JobTemplate: "",
        hpa.HpaSpec: "",
        hpa.CrossVersionObjectReference: "",
        hpa.MetricSpec: "",
        hpa.MetricTarget: "",
        hpa.MetricIdentifier: "",
        hpa.ResourceMetricSource: "",
        hpa.ContainerResourceMetricSource: "",
        hpa.PodsMetricSource: "",
        hpa.ObjectMetricSource: "",
        hpa.ExternalMetricSource: "",
        hpa.Behavior: "",
        hpa.ScalingRules: "",
        hpa.ScalingPolicy: "",
        policy.PodDisruptionBudgetSpec: "",
        policy.PriorityClass: "description",
        storage.PersistentVolumeSpec: (
            "awsElasticBlockStore azureDisk azureFile cephfs cinder fc flexVolume flocker gcePersistentDisk "
            "glusterfs hostPath iscsi local mountOptions nfs photonPersistentDisk portworxVolume quobyte rbd "
            "scaleIO storageos vsphereVolume"
        ),
        storage.PersistentVolumeClaimSpec: "dataSource dataSourceRef",
        storage.ClaimResources: "",
        storage.StorageClass: "allowVolumeExpansion mountOptions parameters",
        storage.TopologyTerm: "",
        storage.TopologyExpression: "",
        storage.CSIStorageCapacity: "",
        resource.DeviceClassSpec: "config",
        resource.DeviceClaim: "config",
        resource.DeviceRequest: "",
        resource.ExactDeviceRequest: "",
        resource.DeviceSubRequest: "",
        resource.DeviceConstraint: "",
        resource.ResourceSliceSpec: "",
        resource.ResourcePool: "",
        resource.Device: "nodeAllocatableResourceMappings",
        resource.DeviceAttribute: "ints bools strings versions",
        resource.ResourceClaimTemplateSpec: "metadata",
        webhooks.MutatingWebhook: "",
        webhooks.ValidatingWebhook: "",
        webhooks.WebhookClientConfig: "",
        webhooks.RuleWithOperations: "",
    }.items()
}
