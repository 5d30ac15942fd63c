"""ProvisioningRequests: capacity for pods that do not exist yet, all of it or none.

Source: Cluster Autoscaler, provisioningrequest and processors/provreq (core of July 2026).
"""
