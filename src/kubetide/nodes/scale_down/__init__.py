"""Scale-down: which nodes are unneeded, which go, and each deletion to its end."""

from __future__ import annotations

from kubetide.nodes.scale_down.absorb_actuation import absorb_actuation
from kubetide.nodes.scale_down.actuation import actuate
from kubetide.nodes.scale_down.decide import absorb, decide, forget_unneeded
from kubetide.nodes.scale_down.deletions import next_wake
from kubetide.nodes.scale_down.soft_taints import cleanup_event, startup_cleanup

__all__ = [
    "absorb",
    "absorb_actuation",
    "actuate",
    "cleanup_event",
    "decide",
    "forget_unneeded",
    "next_wake",
    "startup_cleanup",
]
