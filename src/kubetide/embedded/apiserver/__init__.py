"""The embedded API server: store, rules, defaults, admission, patches, manifests, HTTP, tables and types."""
