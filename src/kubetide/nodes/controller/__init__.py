"""The controller: gathers, carries out, records. Everything that uses a socket or a timer is here."""

from kubetide.nodes.controller.controller import NodesController

__all__ = ["NodesController"]
