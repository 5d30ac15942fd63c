"""Who serves an HPA: this program or another controller; detection, reports, and handing over."""

from __future__ import annotations
