"""Pods up and down: how much CPU and memory each container should ask for, as upstream's VPA 1.8.1 does it.

``updater`` brings running pods to their recommendation, ``admission`` new ones. What both share stands here.
"""
