"""``leader_election_master_status``: the leases by which this process leads.

Source: component-base v0.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.acting import Elector
from kubetide.units.exposition import Registry


def show_leases(registry: Registry, electors: Mapping[str, Elector]) -> None:
    """Add the series; ``electors`` are by the name of the lease."""
    leading = registry.gauge(
        "leader_election_master_status", "Whether this process leads by the lease: 1 or 0.", ("name",)
    )

    def collect() -> None:
        for lease, elector in electors.items():
            leading.set(elector.fence.still_leading(), lease)

    registry.before_scrape(collect)
