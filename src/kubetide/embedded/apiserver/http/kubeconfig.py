"""The kubeconfig by which a client finds a server and is known to it."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml

from kubetide.objects.base import Json

_NAME = "kubetide"


def kubeconfig(url: str, *, token: str, authority: bytes = b"", namespace: str = "default") -> Json:
    """Return a kubeconfig with one cluster and one user.

    Args:
        url: Where the server listens.
        token: The bearer token.
        authority: PEM of the certificate authority, empty for plain HTTP.
        namespace: The namespace of a client that names none.
    """
    cluster: Json = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": _NAME,
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": namespace}}],
    }


def write_kubeconfig(path: Path, config: Json) -> None:
    """Write a kubeconfig that only its owner can read, in place of an older one. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yaml.safe_dump(config, file, sort_keys=False)
    beside.replace(path)
