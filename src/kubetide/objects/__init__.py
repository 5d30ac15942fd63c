"""What Kubernetes says: API types, the registry of kinds, defaults and validation."""
