"""Pods as classes: what a pod asks for, compiled once for all pods that no filter tells apart."""
