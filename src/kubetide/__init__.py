"""The whole Kubernetes autoscaling stack as one Python program."""

__version__ = "0.1.0"
