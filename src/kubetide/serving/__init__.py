"""Serving and asking over HTTP, so that no connection is left open."""

from kubetide.serving.buffers import bound_tls_buffers
from kubetide.serving.connector import make_connector
from kubetide.serving.listener import Listener
from kubetide.serving.session import OwnsSession

__all__ = ["Listener", "OwnsSession", "bound_tls_buffers", "make_connector"]
