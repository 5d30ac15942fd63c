"""From demand to increases: what is asked for, what fits already, options, choice, limits, balance."""
