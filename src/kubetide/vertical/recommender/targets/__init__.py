"""From histograms to recommendations: amounts, their limits, statuses."""
