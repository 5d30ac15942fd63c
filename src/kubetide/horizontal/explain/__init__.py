"""Why an HPA stands where it does: every number on the way, and what would be without a rule."""
