"""How to reach an API server, and how to be known to it.

Source: the kubeconfig format (client-go v1.36, clientcmd/api/v1): one context names a cluster and a
user. Read are tokens, client certificates and authorities, each as data or as a file beside the
kubeconfig; credential plug-ins are not run.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kubetide.objects.base import Json
from kubetide.ports.errors import KubetideError


class KubeconfigError(KubetideError):
    """A kubeconfig that cannot be used; the text names file, entry and fix."""


@dataclass(frozen=True)
class Connection:
    """Where a server is, and what to show it.

    Attributes:
        authority: PEM of the authority to trust; empty for the system's.
        certificate: PEM of a client certificate, with its ``key``.
    """

    url: str
    token: str = field(default="", repr=False)
    authority: str = ""
    certificate: str = ""
    key: str = field(default="", repr=False)
    verify: bool = True

    def tls(self) -> ssl.SSLContext | None:
        """Gives the TLS context, None for plain HTTP."""
        if not self.url.startswith("https:"):
            return None
        context = ssl.create_default_context(cadata=self.authority or None)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate:
            # ``ssl`` reads a key from a file only.
            descriptor, name = tempfile.mkstemp(suffix=".pem")
            try:
                with os.fdopen(descriptor, "w", encoding="ascii") as file:
                    file.write(f"{self.key}\n{self.certificate}")
                context.load_cert_chain(name)
            finally:
                Path(name).unlink()
        return context


def load_kubeconfig(path: Path, context: str = "") -> Connection:
    """Reads a kubeconfig, by its current context or the named one. Raises KubeconfigError."""
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path}: cannot be read as a kubeconfig: {error}") from error
    if not isinstance(config, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig: its top is not a map")
    chosen = context or config.get("current-context") or ""
    if not chosen:
        raise KubeconfigError(f"{path}: current-context is empty: name a context")
    place = _entry(path, config, "context", chosen)
    cluster = _entry(path, config, "cluster", place.get("cluster") or "")
    user = _entry(path, config, "user", place["user"]) if place.get("user") else {}
    for unsupported in ("exec", "auth-provider"):
        if user.get(unsupported):
            raise KubeconfigError(
                f"{path}: user {place['user']}: {unsupported} is not run here: put a token or a client "
                "certificate into the kubeconfig"
            )
    token = user.get("token") or ""
    if not token and user.get("tokenFile"):
        token = _text(path, user["tokenFile"], "tokenFile").strip()
    if not cluster.get("server"):
        raise KubeconfigError(f"{path}: cluster {place.get('cluster')}: server is missing: write its URL")
    return Connection(
        url=cluster["server"].rstrip("/"),
        token=token,
        authority=_material(path, cluster, "certificate-authority"),
        certificate=_material(path, user, "client-certificate"),
        key=_material(path, user, "client-key"),
        verify=not cluster.get("insecure-skip-tls-verify"),
    )


def _entry(path: Path, config: Json, kind: str, name: str) -> Json:
    for item in config.get(f"{kind}s") or ():
        if isinstance(item, dict) and item.get("name") == name:
            found: Any = item.get(kind) or {}
            if isinstance(found, dict):
                return found
    raise KubeconfigError(f'{path}: {kind}s holds no {kind} named "{name}"')


def _material(path: Path, entry: Json, field_name: str) -> str:
    """Gives PEM text that stands in ``<field>-data`` as base64, or in the file that ``<field>`` names."""
    data = entry.get(f"{field_name}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError, ValueError) as error:
            raise KubeconfigError(f"{path}: {field_name}-data is not base64 of PEM: {error}") from error
    return _text(path, entry[field_name], field_name) if entry.get(field_name) else ""


def _text(path: Path, name: str, field_name: str) -> str:
    try:
        return (path.parent / name).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{path}: {field_name}: {name}: cannot be read: {error}") from error
