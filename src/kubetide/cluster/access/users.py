"""The user of a kubeconfig: how to be known to a server.

Source: client-go v1.36 (clientcmd: AuthInfo and ExecConfig, and their validation).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from kubetide.cluster.access.connection import ExecPlugin, Impersonation, InteractiveMode
from kubetide.objects.base import Json
from kubetide.ports.errors import KubetideError

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MODES = ("Never", "IfAvailable", "Always")
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class _Entry(Protocol):
    """An entry of a kubeconfig, which knows how to name itself in an error."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> Path: ...
    @property
    def body(self) -> Json: ...
    def wrong(self, problem: str) -> KubetideError: ...
    def text(self, name: str) -> str: ...
    def path(self, name: str) -> Path | None: ...
    def pem(self, name: str) -> str: ...
    def pem_file(self, name: str) -> Path | None: ...


@dataclass(frozen=True)
class User:
    """What an entry under ``users`` says."""

    token: str = field(default="", repr=False)
    token_file: Path | None = None
    certificate: str = ""
    key: str = field(default="", repr=False)
    certificate_file: Path | None = None
    key_file: Path | None = None
    plugin: ExecPlugin | None = None
    impersonate: Impersonation | None = None


def user_of(entry: _Entry, cluster: _Entry) -> User:
    """Read a user; the cluster is what a plug-in may know. Raises KubeconfigError."""
    if entry.body.get("username") or entry.body.get("password"):
        raise entry.wrong(
            "username, password: API servers take no basic auth: put a token or a client certificate in their place"
        )
    if entry.body.get("auth-provider"):
        raise entry.wrong(
            "auth-provider: was removed from Kubernetes in 1.26: use an exec plug-in in its place"
        )
    certificate, key = entry.pem("client-certificate"), entry.pem("client-key")
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise entry.wrong(f"{missing}: is missing: a client certificate and its key go together")
    plugin = _plugin_of(entry, cluster)
    token, token_file = entry.text("token"), entry.path("tokenFile")
    if plugin is not None and (token or token_file):
        raise entry.wrong("exec and token, tokenFile exclude one another: leave one of them")
    return User(
        token=token,
        token_file=token_file,
        certificate=certificate,
        key=key,
        certificate_file=entry.pem_file("client-certificate"),
        key_file=entry.pem_file("client-key"),
        plugin=plugin,
        impersonate=_impersonation_of(entry),
    )


def _impersonation_of(entry: _Entry) -> Impersonation | None:
    user, uid = entry.text("as"), entry.text("as-uid")
    groups, extra = entry.body.get("as-groups") or (), entry.body.get("as-user-extra") or {}
    if not (user or uid or groups or extra):
        return None
    if not user:
        raise entry.wrong("as: is missing: as-uid, as-groups and as-user-extra need a user to act as")
    if not _all_text(groups):
        raise entry.wrong("as-groups: expected a list of names")
    if not isinstance(extra, dict) or not all(_all_text(values) for values in extra.values()):
        raise entry.wrong("as-user-extra: expected a map of lists of text")
    return Impersonation(user, uid, tuple(groups), {str(key): tuple(values) for key, values in extra.items()})


def _plugin_of(entry: _Entry, cluster: _Entry) -> ExecPlugin | None:
    said: Any = entry.body.get("exec")
    if not said:
        return None
    if not isinstance(said, dict):
        raise entry.wrong("exec: expected a map with apiVersion and command")
    command, version = said.get("command"), said.get("apiVersion")
    for name, value in (("command", command), ("apiVersion", version)):
        if not isinstance(value, str) or not value:
            raise entry.wrong(
                f"exec.{name}: {name} must be specified for {entry.name} to use exec authentication plugin"
            )
    if version not in _EXEC_VERSIONS:
        raise entry.wrong(f"exec.apiVersion: {version} is not supported: use {' or '.join(_EXEC_VERSIONS)}")
    mode = said.get("interactiveMode")
    if not mode:
        if version == _EXEC_VERSIONS[0]:
            raise entry.wrong(
                "exec.interactiveMode: interactiveMode must be specified for "
                f"{entry.name} to use exec authentication plugin: one of {', '.join(_MODES)}"
            )
        mode = "IfAvailable"
    if mode not in _MODES:
        raise entry.wrong(f"exec.interactiveMode: {mode} is none of {', '.join(_MODES)}")
    args = said.get("args") or ()
    if not _all_text(args):
        raise entry.wrong("exec.args: expected a list of text")
    command = str(command)
    # A path is relative to the file; a bare name is looked for on the PATH.
    path = str(entry.file.parent / command) if "/" in command else command
    return ExecPlugin(
        api_version=str(version),
        command=path,
        args=tuple(args),
        env=_environment_of(entry, said.get("env") or ()),
        install_hint=str(said.get("installHint") or ""),
        interactive_mode=cast("InteractiveMode", mode),
        cluster=_told_of(cluster) if said.get("provideClusterInfo") else None,
    )


def _environment_of(entry: _Entry, said: Any) -> dict[str, str]:
    found = {}
    for item in said if isinstance(said, list | tuple) else (None,):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"]:
            raise entry.wrong("exec.env: expected a list of maps with name and value")
        found[item["name"]] = str(item.get("value") or "")
    return found


def _told_of(cluster: _Entry) -> Json:
    """Return what KUBERNETES_EXEC_INFO says of the cluster."""
    body = cluster.body
    names = (
        "server",
        "tls-server-name",
        "insecure-skip-tls-verify",
        "certificate-authority-data",
        "proxy-url",
    )
    fields = {name: body[name] for name in names if body.get(name)}
    authority = cluster.path("certificate-authority")
    if authority is not None and "certificate-authority-data" not in fields:
        fields["certificate-authority-data"] = base64.b64encode(
            cluster.pem("certificate-authority").encode()
        ).decode()
    for extension in body.get("extensions") or ():
        if isinstance(extension, dict) and extension.get("name") == _EXEC_EXTENSION:
            fields["config"] = extension.get("extension")
    return fields


def _all_text(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)
