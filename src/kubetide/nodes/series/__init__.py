"""``cluster_autoscaler_*``: what the node loop tells Prometheus, under upstream's names."""

from kubetide.nodes.series.ticks import NodesSeries

__all__ = ["NodesSeries"]
