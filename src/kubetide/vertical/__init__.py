"""Pods up and down: the vertical loop, as upstream's VPA 1.8.1 does it.

``recommender`` says how much CPU and memory each container should ask for, ``updater`` brings running pods to it,
``admission`` new ones. What they share stands directly in this package.
"""
