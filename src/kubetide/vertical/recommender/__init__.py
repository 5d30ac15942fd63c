"""The recommender: usage into histograms, histograms into recommendations, as upstream's does (VPA 1.8)."""
