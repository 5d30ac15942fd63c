"""What the recommender reads: VPAs, pods, HPAs, OOM kills, history."""
