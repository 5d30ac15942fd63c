"""What the recommender exposes to Prometheus."""
