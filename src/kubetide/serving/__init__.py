"""Serving over HTTP."""

from kubetide.serving.listener import Listener

__all__ = ["Listener"]
