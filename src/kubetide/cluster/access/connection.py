"""How to reach an API server, and how to be known to it: as data, with nothing read or run yet.

Source: the kubeconfig format (client-go v1.36, clientcmd/api/v1).
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from kubetide.objects.base import Json
from kubetide.ports.errors import KubetideError

InteractiveMode = Literal["Never", "IfAvailable", "Always"]


class ConfigError(KubetideError):
    """A configuration that leads to no server; the text names its place, the field and the fix."""


@dataclass(frozen=True)
class Impersonation:
    """Whom to act as; ``extra`` are the further attributes of that user, by key."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ExecPlugin:
    """A command that prints credentials (client.authentication.k8s.io).

    Attributes:
        command: A name that is looked for on the PATH, or a path.
        env: What the command finds in its environment beside this process's own.
        install_hint: What a person reads when the command is missing.
        interactive_mode: Whether the command may, or must, talk to a person on standard input.
        cluster: What it gets to know of the cluster; None for nothing (``provideClusterInfo`` is off).
    """

    api_version: str
    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    interactive_mode: InteractiveMode = "IfAvailable"
    cluster: Json | None = None


class PemFiles(NamedTuple):
    """Where the PEM of a connection stands in files, which may be replaced; None for what does not."""

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class Connection:
    """Where a server is, and what to show it.

    Attributes:
        token: A bearer token; ``token_file``, where it can be read, is used in its place and read anew.
        authority: PEM of the authorities to trust; empty for the system's.
        certificate: PEM of a client certificate, with its ``key``.
        files: Where these three were read from.
        plugin: A command to get a token or a certificate from.
        server_name: The name that the server's certificate must bear, where it is not that of the URL.
        proxy: URL of the proxy to go through; empty for none.
        namespace: The namespace to use where none is said.
    """

    url: str
    token: str = field(default="", repr=False)
    authority: str = ""
    certificate: str = ""
    key: str = field(default="", repr=False)
    files: PemFiles = field(default_factory=PemFiles)
    verify: bool = True
    token_file: Path | None = None
    plugin: ExecPlugin | None = None
    impersonate: Impersonation | None = None
    server_name: str = ""
    proxy: str = field(default="", repr=False)
    namespace: str = "default"

    def read_anew(self) -> Connection:
        """Return the connection with what its files hold now.

        Raises: ConfigError for one that cannot be read, or is empty: no authority would mean the system's.
        """
        found = {}
        for name, path in self.files._asdict().items():
            if path is None:
                continue
            try:
                found[name] = path.read_text(encoding="ascii")
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"{path} cannot be read as PEM: {error}") from error
            if not found[name].strip():
                raise ConfigError(f"{path} cannot be read as PEM: it is empty")
        return replace(self, **found)

    def tls(self, certificate: str = "", key: str = "") -> ssl.SSLContext | None:
        """Return the TLS context, None for plain HTTP; a certificate given here is shown in place of its own.

        Raises: ConfigError that names the field whose PEM cannot be used.
        """
        if not self.url.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cadata=self.authority or None)
        except ssl.SSLError as error:
            raise ConfigError(f"certificate-authority: cannot be used: {error}: give it as PEM") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        shown, its_key = (certificate, key) if certificate else (self.certificate, self.key)
        if shown:
            _load_pair(context, shown, its_key)
        return context


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # ``ssl`` reads a key from a file only.
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{key}\n{certificate}")
        context.load_cert_chain(name)
    except (ssl.SSLError, UnicodeEncodeError) as error:
        raise ConfigError(
            f"client-certificate, client-key: cannot be used: {error}: give a PEM certificate and its own key"
        ) from error
    finally:
        Path(name).unlink()
