"""Serving and asking over HTTP, so that no connection is left open."""

import sys

from kubetide.serving.buffers import bound_tls_buffers
from kubetide.serving.connector import make_connector
from kubetide.serving.listener import Listener
from kubetide.serving.lost_tls import mend_abort
from kubetide.serving.session import OwnsSession

__all__ = ["Listener", "OwnsSession", "bound_tls_buffers", "make_connector"]

if sys.version_info < (3, 11, 7):
    mend_abort()
