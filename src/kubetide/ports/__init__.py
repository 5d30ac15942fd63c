"""The four ports: Cluster, Cloud, MetricSource and Clock. Every adapter passes their batteries."""
