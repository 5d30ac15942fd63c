"""The snapshot: which pods are on which nodes, forks and reverts, verdicts and their validity."""
