"""Errors of a capture."""

from __future__ import annotations

from kubetide.ports.errors import KubetideError


class CaptureError(KubetideError):
    """Data that no scenario can be built from; the text gives the reason and the fix."""
