"""Admission webhooks: who is asked about a request, with which review, and what its answer does."""

from kubetide.embedded.apiserver.admission.attributes import Attributes, UserInfo, View
from kubetide.embedded.apiserver.admission.caller import Address, Caller, CallError
from kubetide.embedded.apiserver.admission.dispatch import Dispatcher
from kubetide.embedded.apiserver.admission.hooks import Hook, hooks_of

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
