"""Certificates of the embedded API server, which ``serving.certificates`` makes."""

from __future__ import annotations

from kubetide.serving.certificates import Authority, KeyPair, load_pair

__all__ = ["Authority", "KeyPair", "load_pair"]
