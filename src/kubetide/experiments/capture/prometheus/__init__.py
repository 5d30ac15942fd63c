"""A captured run from Prometheus: what kube-state-metrics and cAdvisor exposed, for times that no record covers."""
