"""Pods up: the vertical loop (VPA). What recommender, updater and admission share stands directly in this package."""
