"""The vocabulary of reasons, the decision records, and their rendering for people."""
