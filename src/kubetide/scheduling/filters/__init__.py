"""The scheduler's filter plugins, one file each; ``registry`` lists them in upstream's order."""
