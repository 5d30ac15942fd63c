"""The node loop (Cluster Autoscaler). ``decide.py`` lists the steps of its algorithm."""
