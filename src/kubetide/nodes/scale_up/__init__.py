"""From demand to increases: pending pods, existing capacity, options, choice, limits, balancing."""
