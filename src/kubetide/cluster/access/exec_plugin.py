"""Credentials from a command: the exec plug-ins of client.authentication.k8s.io.

Source: client-go v1.36 (plugin/pkg/client/auth/exec) and the reference of "client-go credential plugins".
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, NamedTuple

import msgspec

from kubetide.cluster.access.connection import ExecPlugin
from kubetide.cluster.refusals import UNREADABLE
from kubetide.objects.base import Json
from kubetide.ports.errors import KubetideError
from kubetide.units.time import Instant, TimeFormatError, parse_rfc3339

_TIMEOUT_S = 60.0
"""How long a command may take that talks to nobody."""

_NOT_INSTALLED = """

It looks like you are trying to use a client-go credential plugin that is not installed.

To learn more about this feature, consult the documentation available at:
      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"""


class PluginError(KubetideError):
    """A plug-in that gave no credentials; the text says why and, for a missing one, how to install it."""


class Issued(NamedTuple):
    """What a plug-in gave: a token, or a certificate with its key, or both; and until when, None for ever."""

    token: str
    certificate: str
    key: str
    expires: Instant | None

    def __repr__(self) -> str:
        return f"Issued(expires={self.expires})"


async def run_plugin(plugin: ExecPlugin) -> Issued:
    """Run the command and read what it prints. Raises PluginError."""
    interactive = _is_interactive(plugin)
    environment = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": _exec_info(plugin, interactive)}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=environment,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError:
        hint = f"\n\n{plugin.install_hint}" if plugin.install_hint else ""
        raise PluginError(f"exec: executable {plugin.command} not found{_NOT_INSTALLED}{hint}") from None
    except OSError as error:
        raise PluginError(f"exec: executable {plugin.command} failed to start: {error.strerror}") from error
    try:
        async with asyncio.timeout(None if interactive else _TIMEOUT_S):
            printed, _ = await process.communicate()
    except TimeoutError:
        raise PluginError(f"exec: executable {plugin.command} has not ended after {_TIMEOUT_S:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise PluginError(f"exec: executable {plugin.command} failed with exit code {process.returncode}")
    return _read(plugin, printed)


def _is_interactive(plugin: ExecPlugin) -> bool:
    """Return whether the command gets our standard input. Raises PluginError when it needs it and it is no terminal."""
    if plugin.interactive_mode == "Never":
        return False
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise PluginError("exec plugin cannot support interactive mode: standard input is not a terminal")
    return terminal


def _exec_info(plugin: ExecPlugin, interactive: bool) -> str:
    spec: Json = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(info).decode()


def _read(plugin: ExecPlugin, printed: bytes) -> Issued:
    """Read the ExecCredential; what it says is never part of an error, as it is secret."""
    try:
        credential: Any = msgspec.json.decode(printed)
    except UNREADABLE:
        credential = None
    if not isinstance(credential, dict) or credential.get("kind") != "ExecCredential":
        raise PluginError("decoding stdout: the exec plugin did not print an ExecCredential in JSON")
    version = credential.get("apiVersion")
    if version != plugin.api_version:
        raise PluginError(
            f"exec plugin is configured to use API version {plugin.api_version}, plugin returned version {version}"
        )
    status = credential.get("status")
    if not isinstance(status, dict):
        raise PluginError("exec plugin didn't return a status field")
    token, certificate, key = (
        str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if not token and not certificate and not key:
        raise PluginError("exec plugin didn't return a token or cert/key pair")
    if bool(certificate) != bool(key):
        raise PluginError("exec plugin returned only certificate or key, not both")
    expires = status.get("expirationTimestamp")
    try:
        return Issued(token, certificate, key, parse_rfc3339(str(expires)) if expires else None)
    except TimeFormatError as error:
        raise PluginError(f"exec plugin returned an expirationTimestamp that is no time: {error}") from error
