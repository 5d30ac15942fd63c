"""Deployment, ReplicaSet, DaemonSet, StatefulSet, Job and CronJob."""
