"""Input of the recommender: VPAs, pods, HPAs, OOM kills, history."""
