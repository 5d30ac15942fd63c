"""Google Compute Engine: zonal managed instance groups."""
