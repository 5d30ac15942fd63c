"""The connection of a pod: its service account.

Source: client-go v1.36 (rest.InClusterConfig).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from kubetide.cluster.access.connection import ConfigError, Connection, PemFiles

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts token, authority and namespace of a pod's service account."""

_LOG = logging.getLogger(__name__)


def why_no_account(environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> str:
    """Return why there is no service account to be used: this is no pod, or one without a token; empty if there is one."""
    if not _address(environ):
        return "this is no pod"
    token = folder / "token"
    if token.is_file():
        return ""
    return (
        f"this pod has no service account: {token} is missing (automountServiceAccountToken: true mounts it)"
    )


def in_cluster(environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Connection:
    """Return the connection of a pod; its token is read anew while it is used, as it is replaced from time to time.

    Raises: ConfigError when this is not a pod, or has no service account.
    """
    url = _address(environ)
    if not url:
        raise ConfigError(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        )
    token_file = folder / "token"
    try:
        token = token_file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"unable to load in-cluster configuration: {token_file}: {error}: "
            "give the pod a service account, with automountServiceAccountToken"
        ) from error
    authority_file = folder / "ca.crt"
    authority = _read_or_empty(authority_file)
    return Connection(
        url=url,
        token=token,
        token_file=token_file,
        authority=authority,
        files=PemFiles(authority=authority_file if authority else None),
        namespace=_read_or_empty(folder / "namespace").strip() or "default",
    )


def _address(environ: Mapping[str, str]) -> str:
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        return ""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _read_or_empty(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        # As upstream: without it the system's own authorities are trusted.
        _LOG.warning("%s cannot be read: %s", path, error)
        return ""
