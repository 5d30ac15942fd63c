"""Reads a page of series as Prometheus would."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families


def read(registry, prefix=""):
    """Return the numbers by name and values of the labels, without buckets."""
    found, names = {}, {family.name for family in registry.families}
    for family in text_string_to_metric_families(registry.text().decode()):
        for one in family.samples:
            # The reader gives every counter the ending that it has in OpenMetrics.
            name = one.name if one.name in names else one.name.removesuffix("_total")
            if name.startswith(prefix) and "le" not in one.labels:
                found[(name.removeprefix(prefix), *one.labels.values())] = one.value
    return found
