"""What can go wrong with a capture."""

from __future__ import annotations

from kubetide.ports.errors import KubetideError


class CaptureError(KubetideError):
    """What no scenario can be made of; the text says why and what to do."""
