"""Serving over HTTP."""

from kubetide.serving.buffers import bound_tls_buffers
from kubetide.serving.listener import Listener

__all__ = ["Listener", "bound_tls_buffers"]
