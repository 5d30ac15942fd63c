"""Converts existing autoscalers and time tables to ElasticWorkloads and back, without loss."""
