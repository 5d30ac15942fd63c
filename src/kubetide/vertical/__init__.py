"""Pods up: the vertical loop (VPA).

What recommender, updater and admission share stands directly in this package: ``policies`` (which
container policy holds, what it allows) and ``targets`` (a VPA's pod selector, the topmost owner of a controller).
"""
