"""Pods as classes: a pod's requirements, compiled once for all pods that every filter treats alike."""
