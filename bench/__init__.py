"""Speed and memory, as CPU time with a ratio to a floor that is measured in the same run."""
