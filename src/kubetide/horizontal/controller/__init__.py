"""The controller: gathers, carries out, records. Everything that uses a socket or a timer is here."""

from kubetide.horizontal.controller.controller import HorizontalController
from kubetide.horizontal.controller.sources import GuardedSource

__all__ = ["GuardedSource", "HorizontalController"]
