"""Where the lease is by which the admission controller says that it answers."""

from __future__ import annotations

import os

_DEFAULT = "kube-system"


def lease_namespace(flag: str) -> str:
    """Return the namespace: the flag, else ``$NAMESPACE``, else kube-system."""
    return flag or own_namespace()


def own_namespace() -> str:
    """Return the namespace of the process: ``$NAMESPACE``, else kube-system."""
    return os.environ.get("NAMESPACE") or _DEFAULT
