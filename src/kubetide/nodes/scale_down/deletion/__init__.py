"""Each deletion to its end: taints, evictions, the call to the cloud, and their outcomes."""
