"""Gathers, carries out, records."""

from kubetide.vertical.updater.controller.controller import LOOP, UpdaterController

__all__ = ["LOOP", "UpdaterController"]
