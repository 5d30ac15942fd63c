"""Facts that only expanders read."""

from __future__ import annotations

from typing import Final

import msgspec

PRIORITY_MAP: Final = "cluster-autoscaler-priority-expander"
"""The name of the ConfigMap of the expander ``priority``; it is read in the autoscaler's namespace."""
PRIORITIES_KEY: Final = "priorities"


class PriorityMap(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ConfigMap of the expander ``priority``, read at the beginning of a tick."""

    found: bool = False
    uid: str = ""
    priorities: str | None = None
    """The text of the key ``priorities``; None without the key."""
