"""What the containers of a pod may get: policies, LimitRanges, ratios, start-up boosts."""
