"""The HTTP face of the embedded cluster: the Kubernetes API on a socket, for kubectl and any client."""

from __future__ import annotations

from kubetide.embedded.apiserver.http.access import Identities, Rule, User
from kubetide.embedded.apiserver.http.app import ApiServer

__all__ = ["ApiServer", "Identities", "Rule", "User"]
