"""Upstream's externalgrpc protocol: a provider behind it as a cloud of ours, and a cloud of ours behind it."""
