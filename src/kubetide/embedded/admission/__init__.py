"""Admission webhooks: who is asked about a request, with which review, and what its answer does."""

from kubetide.embedded.admission.attributes import Attributes, UserInfo, View
from kubetide.embedded.admission.caller import Address, Caller, CallError
from kubetide.embedded.admission.dispatch import Dispatcher
from kubetide.embedded.admission.hooks import Hook, hooks_of

__all__ = [
    "Address",
    "Attributes",
    "CallError",
    "Caller",
    "Dispatcher",
    "Hook",
    "UserInfo",
    "View",
    "hooks_of",
]
