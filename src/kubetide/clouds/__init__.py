"""Adapters of the Cloud port, one package a provider, loaded when named."""
