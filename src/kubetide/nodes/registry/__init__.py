"""Cluster state: present, target and upcoming nodes of each group; failures, backoff, the status."""
