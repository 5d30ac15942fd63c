"""A history of figures beside each segment of records: nodes, pods, cost, replicas, as columns for charts."""
