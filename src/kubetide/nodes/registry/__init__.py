"""Cluster state: how many nodes each group has, should have and waits for; failures, backoff, the status."""
