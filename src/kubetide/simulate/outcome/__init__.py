"""The outcome of a run: its timeline, marks, figures, invariants and summary."""
