"""Options beyond upstream, per HPA and only where an annotation turns them on: one rule per file."""
