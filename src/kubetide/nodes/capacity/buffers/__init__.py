"""CapacityBuffers: capacity reserved for future pods, as placeholder pods that exist only in the plan.

Source: Cluster Autoscaler, capacitybuffer and processors/capacitybuffer (core of July 2026).
"""
