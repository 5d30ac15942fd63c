"""What nodes, pods, volumes and devices are to the node loop, and the fields of them that it reads."""
