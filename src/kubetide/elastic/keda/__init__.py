"""KEDA's ScaledObjects: queues, queries, windows and resources scale a workload, also from and to zero.

As KEDA does it: this loop takes the workload from none to some and back, and an HPA with a metric for each trigger does
the rest. Here that HPA is only shown to the horizontal loop (``elastic.controller.shown``).
"""
