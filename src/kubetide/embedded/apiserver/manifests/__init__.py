"""Manifests, read as strictly as the API server reads them."""
