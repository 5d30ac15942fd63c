"""The controllers of the embedded cluster: clients of the Cluster port, each in a file of its own."""

from kubetide.embedded.controllers.cronjob import CronJobController
from kubetide.embedded.controllers.daemonset import DaemonSetController
from kubetide.embedded.controllers.deployment import DeploymentController
from kubetide.embedded.controllers.device_cache import DeviceCache
from kubetide.embedded.controllers.disruption import DisruptionController
from kubetide.embedded.controllers.job import JobController
from kubetide.embedded.controllers.owned_pods import PodIndex
from kubetide.embedded.controllers.pod_chooser import PodChooser
from kubetide.embedded.controllers.replicaset import ReplicaSetController
from kubetide.embedded.controllers.resource_claims import ResourceClaimController
from kubetide.embedded.controllers.scheduler import Scheduler
from kubetide.embedded.controllers.statefulset import StatefulSetController
from kubetide.embedded.controllers.volume_cache import VolumeCache
from kubetide.embedded.controllers.volumes import VolumeController

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
    "VolumeCache",
    "VolumeController",
]
