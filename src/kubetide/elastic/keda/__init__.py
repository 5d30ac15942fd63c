"""KEDA's ScaledObjects with external triggers: a queue behind a gRPC server scales a workload from and to zero.

As KEDA does it: this loop takes the workload from none to some and back, and an HPA with external metrics does the
rest. Here that HPA is only shown to the horizontal loop (``elastic.controller.shown``).
"""
