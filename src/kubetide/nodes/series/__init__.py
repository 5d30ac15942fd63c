"""``cluster_autoscaler_*``: the series of the node loop, under upstream's names."""

from kubetide.nodes.series.ticks import NodesSeries

__all__ = ["NodesSeries"]
