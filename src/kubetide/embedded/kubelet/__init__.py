"""Pods and nodes that live: one pool of kubelets for all nodes of an embedded cluster."""

from kubetide.embedded.kubelet.pool import HEARTBEAT, KubeletPool
from kubetide.embedded.kubelet.times import DEFAULT_TIMES, PodTimes, Settled

__all__ = ["DEFAULT_TIMES", "HEARTBEAT", "KubeletPool", "PodTimes", "Settled"]
