"""From histograms to recommendations: amounts, limits to them, statuses."""
