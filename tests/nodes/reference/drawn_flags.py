"""Values that random lives give to flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FLAGS: Mapping[str, tuple[Any, ...]] = {
    "balance-similar-node-groups": ("true", "false"),
    "blocking-system-pod-distruption-timeout": ("1h", "10m"),
    "cordon-node-before-terminating": ("true", "false"),
    "cores-total": ("0:320000", "0:320000", "0:20", "12:40"),
    "daemonset-eviction-for-empty-nodes": ("true", "false"),
    "daemonset-eviction-for-occupied-nodes": ("true", "false"),
    "enable-proactive-scaleup": ("true", "false", "false"),
    "enforce-node-group-min-size": ("true", "false"),
    "expander": ("random", "least-waste", "most-pods", "least-nodes", "most-pods,least-waste"),
    "expendable-pods-priority-cutoff": (-10, -10, 0),
    "force-delete-failed-nodes": ("true", "false"),
    "force-delete-unregistered-nodes": ("true", "false"),
    "force-ds": ("true", "false", "false"),
    "ignore-daemonsets-utilization": ("true", "false"),
    "ignore-mirror-pods-utilization": ("true", "false"),
    "initial-node-group-backoff-duration": ("5m", "1m"),
    "max-bulk-soft-taint-count": (10, 1, 0),
    "max-drain-parallelism": (1, 2, 3),
    "max-graceful-termination-sec": (600, 20),
    "max-node-group-backoff-duration": ("30m", "2m"),
    "max-node-provision-time": ("15m", "3m"),
    "max-nodes-per-scaleup": (1000, 2),
    "max-nodes-total": (0, 0, 0, 6, 9),
    "max-scale-down-parallelism": (10, 3, 1),
    "max-total-unready-percentage": (45, 20),
    "memory-total": ("0:6400000", "0:6400000", "24:80"),
    "min-replica-count": (0, 0, 2),
    "new-pod-scale-up-delay": ("0s", "0s", "30s"),
    "node-deletion-candidate-ttl": ("0s", "10m"),
    "node-group-backoff-reset-timeout": ("3h", "3m"),
    "ok-total-unready-count": (3, 3, 0),
    "salvo-scale-up": ("true", "false"),
    "scale-down-delay-after-add": ("0s", "1m", "10m"),
    "scale-down-delay-after-delete": ("0s", "0s", "2m"),
    "scale-down-delay-after-failure": ("3m", "0s"),
    "scale-down-delay-type-local": ("false", "false", "true"),
    "scale-down-enabled": ("true", "true", "true", "false"),
    "scale-down-unneeded-time": ("0s", "1m", "2m"),
    "scale-down-unready-enabled": ("true", "true", "false"),
    "scale-down-unready-time": ("20m", "1m"),
    "scale-down-utilization-threshold": ("0.5", "0.5", "0.7", "0.9"),
    "scale-from-unschedulable": ("true", "false"),
    "scale-up-from-zero": ("true", "false"),
    "skip-nodes-with-custom-controller-pods": ("true", "false"),
    "skip-nodes-with-local-storage": ("true", "false"),
    "skip-nodes-with-system-pods": ("true", "false"),
    "status-config-map-name": ("cluster-autoscaler-status", "state"),
    "unremovable-node-recheck-timeout": ("5m", "30s", "0s"),
    "write-status-configmap": ("true", "true", "false"),
}
SLOW_FLAGS: Mapping[str, tuple[Any, ...]] = {
    "drain-priority-config": ("", "0:60", "0:5,100:0"),
    "max-pod-eviction-time": ("2m", "35s", "0s"),
    "node-delete-delay-after-taint": ("5s", "40s", "0s"),
    # So it never ends at the moment at which another node is ready: either may come first then.
    "node-deletion-batcher-interval": ("0s", "21s", "101s"),
    "node-deletion-delay-timeout": ("2m", "12s", "0s"),
}
"""Flags of lives in which deletions last for several loops."""
