"""Node groups that the loop creates for pods, and deletes when they are empty."""
