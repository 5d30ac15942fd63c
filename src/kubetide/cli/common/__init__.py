"""What several commands share: output, exit statuses, names of kinds, progress."""
