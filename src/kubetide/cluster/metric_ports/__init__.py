"""The metric ports over HTTP, and Prometheus."""
