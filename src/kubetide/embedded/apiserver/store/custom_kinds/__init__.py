"""Kinds that a CustomResourceDefinition brings: schemas, scale, and what they do not know."""
