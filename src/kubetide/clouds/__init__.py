"""Adapters of the Cloud port to real clouds: one package a provider, loaded when it is named."""
