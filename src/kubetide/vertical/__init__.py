"""The vertical loop, equal to upstream's VPA 1.8.1.

``recommender`` says how much CPU and memory each container should ask for, ``updater`` brings running pods to it,
``admission`` new ones. What they share stands directly in this package: ``policies`` and ``capping`` (what a policy, a
LimitRange and a limit allow), ``targets`` and ``workloads`` (pod selectors, topmost owners), ``matching`` (which VPA
controls a pod).
"""
