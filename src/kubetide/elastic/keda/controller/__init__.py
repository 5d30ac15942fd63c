"""Queries the servers of external triggers, starts and stops their workloads, shows their HPAs."""
