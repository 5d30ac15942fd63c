"""Existing autoscalers and time tables into ElasticWorkloads, and back, without loss."""
