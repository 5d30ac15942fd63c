"""Google Compute Engine: managed instance groups of a zone or of a region."""
