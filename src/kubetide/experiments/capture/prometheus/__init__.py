"""A captured run from Prometheus: what kube-state-metrics and cAdvisor told it, for times that no record covers."""
