"""Settings of consolidation and of remembered demand; kubetide's own, off by default as upstream has neither."""

from __future__ import annotations

import msgspec

from kubetide.nodes.consolidation.budgets import parse_budgets
from kubetide.units.time import ZERO, Duration, hours, minutes


class ConsolidationSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The flags, dashes written as underscores; durations in ns."""

    consolidation_enabled: bool = False
    """Whether nodes are replaced by cheaper ones, or merged, when the saving exceeds what the disruption is priced at."""
    consolidation_eviction_price: float = 0.01
    """What the eviction of one pod counts for, in the currency of the groups' prices."""
    consolidation_expected_stay: Duration = hours(4)
    """The longest time for which a saving is counted; a node is expected to stay for as long as it has been there."""
    consolidation_budgets: str = "nodes=10%"
    """How many nodes may be disrupted at once, as Karpenter's budgets: ``nodes=10% reasons=Empty,Underutilized schedule="0 9 * * 1-5" duration=8h``, with semicolons between several."""
    remember_demand: Duration = ZERO
    """How long increases are remembered; nodes that this demand would buy back are not given away. 0 for never."""
    buy_back_price: Duration = minutes(15)
    """The price of buying a node back, as running time: the node stays while its next use is expected sooner."""

    def __post_init__(self) -> None:
        """Raise ValueError for budgets that cannot be read."""
        parse_budgets(self.consolidation_budgets)
