"""The controllers of the embedded cluster: clients of the Cluster port, each in a file of its own."""

from kubetide.embedded.controllers.disruption import DisruptionController
from kubetide.embedded.controllers.resource_claims import ResourceClaimController
from kubetide.embedded.controllers.scheduling.device_cache import DeviceCache
from kubetide.embedded.controllers.scheduling.pod_chooser import PodChooser
from kubetide.embedded.controllers.scheduling.scheduler import Scheduler
from kubetide.embedded.controllers.scheduling.volume_cache import VolumeCache
from kubetide.embedded.controllers.taint_eviction import TaintEvictionController
from kubetide.embedded.controllers.volumes import VolumeController
from kubetide.embedded.controllers.workloads.cronjob import CronJobController
from kubetide.embedded.controllers.workloads.daemonset import DaemonSetController
from kubetide.embedded.controllers.workloads.deployment import DeploymentController
from kubetide.embedded.controllers.workloads.job import JobController
from kubetide.embedded.controllers.workloads.owned_pods import PodIndex
from kubetide.embedded.controllers.workloads.replicaset import ReplicaSetController
from kubetide.embedded.controllers.workloads.statefulset import StatefulSetController

__all__ = [
    "CronJobController",
    "DaemonSetController",
    "DeploymentController",
    "DeviceCache",
    "DisruptionController",
    "JobController",
    "PodChooser",
    "PodIndex",
    "ReplicaSetController",
    "ResourceClaimController",
    "Scheduler",
    "StatefulSetController",
    "TaintEvictionController",
    "VolumeCache",
    "VolumeController",
]
