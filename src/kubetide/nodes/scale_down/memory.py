"""What scale-down remembers between ticks."""

from __future__ import annotations

import msgspec


class ScaleDownMemory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All that outlives a tick."""
