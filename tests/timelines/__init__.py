"""Who acts when: short timelines recorded on a real control plane, and played on the embedded cluster."""
