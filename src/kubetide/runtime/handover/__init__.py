"""Who serves an HPA: this program or another controller; seen, said, and moved from one to the other."""

from __future__ import annotations
