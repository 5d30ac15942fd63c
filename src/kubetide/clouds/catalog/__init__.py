"""Prices and shapes of machines as a user's own data, over what a cloud says of them."""

from __future__ import annotations

from kubetide.clouds.catalog.cloud import with_catalog
from kubetide.clouds.catalog.rows import Catalog, CatalogError, Row, Shape
from kubetide.clouds.catalog.tables import parse_catalog, read_catalog

__all__ = ["Catalog", "CatalogError", "Row", "Shape", "parse_catalog", "read_catalog", "with_catalog"]
