"""Pods as classes: what a pod asks for, compiled once for all pods that are the same to every filter."""
