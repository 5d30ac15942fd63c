"""Decisions sent to a webhook: selection, format, rate, and delivery."""

from kubetide.runtime.notify.messages import Decision, decisions_of, encoded
from kubetide.runtime.notify.notifier import Notifier
from kubetide.runtime.notify.settings import check_notify

__all__ = ["Decision", "Notifier", "check_notify", "decisions_of", "encoded"]
