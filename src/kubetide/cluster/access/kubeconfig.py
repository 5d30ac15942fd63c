"""Kubeconfigs: several files as one, and the connection that a context names.

Of an entry or a setting that stands in several files the first file's holds, whole; paths are relative to
the file that they stand in. Source: client-go v1.36 (clientcmd), and "Organizing Cluster Access Using
kubeconfig Files" of the Kubernetes documentation.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kubetide.cluster.access.connection import ConfigError, Connection, PemFiles
from kubetide.cluster.access.users import User, user_of
from kubetide.objects.base import Json

_KINDS = ("cluster", "user", "context")


class KubeconfigError(ConfigError):
    """A kubeconfig that cannot be used; the text names file, entry, field and fix."""


@dataclass(frozen=True)
class Entry:
    """One cluster, user or context, and the file it stands in."""

    kind: str
    name: str
    file: Path
    body: Json = field(repr=False)

    def wrong(self, problem: str) -> KubeconfigError:
        """Return the error that this entry has that problem."""
        return KubeconfigError(f'{self.file}: {self.kind} "{self.name}": {problem}')

    def text(self, name: str) -> str:
        """Return a field of text, empty where it is not there."""
        value = self.body.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(f"{name}: expected text, not {type(value).__name__}: put it in quotes")
        return value

    def path(self, name: str) -> Path | None:
        """Return the file that a field names."""
        said = self.text(name)
        return self.file.parent / said if said else None

    def pem(self, name: str) -> str:
        """Return PEM text that stands in ``<name>-data`` as base64 or, without it, in the file that ``<name>`` names."""
        data = self.text(f"{name}-data")
        if data:
            try:
                return base64.b64decode(data, validate=True).decode("ascii")
            except (binascii.Error, UnicodeDecodeError, ValueError) as error:
                raise self.wrong(f"{name}-data: is not base64 of PEM: {error}") from error
        path = self.pem_file(name)
        if path is None:
            return ""
        try:
            return path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise self.wrong(f"{name}: {path} cannot be read as PEM: {error}") from error

    def pem_file(self, name: str) -> Path | None:
        """Return the file that PEM stands in; None where it stands here, or nowhere."""
        return None if self.body.get(f"{name}-data") else self.path(name)


@dataclass(frozen=True)
class Kubeconfig:
    """Several files as one."""

    files: tuple[Path, ...]
    current_context: str
    entries: dict[tuple[str, str], Entry] = field(repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether the files name nothing to connect to."""
        return not self.entries and not self.current_context

    def connection(self, context: str = "") -> Connection:
        """Return the connection of the named context, or of the current one. Raises KubeconfigError."""
        chosen = context or self.current_context
        if not chosen:
            raise KubeconfigError(f"{self._places()}: current-context is empty: name a context")
        place = self._entry("context", chosen)
        cluster = self._entry("cluster", place.text("cluster"))
        user_name = place.text("user")
        user = user_of(self._entry("user", user_name), cluster) if user_name else User()
        made = _connection(cluster, user, place.text("namespace"))
        try:
            made.tls()
        except ConfigError as error:
            raise KubeconfigError(f'{self._places()}: context "{chosen}": {error}') from error
        return made

    def _entry(self, kind: str, name: str) -> Entry:
        found = self.entries.get((kind, name))
        if found is None:
            known = ", ".join(sorted(other for its_kind, other in self.entries if its_kind == kind)) or "none"
            raise KubeconfigError(
                f'{self._places()}: {kind}s holds no {kind} named "{name}": add it, or name one of: {known}'
            )
        return found

    def _places(self) -> str:
        return ", ".join(str(file) for file in self.files)


def load_kubeconfig(path: Path, context: str = "") -> Connection:
    """Read one kubeconfig, by its current context or the named one. Raises KubeconfigError."""
    return read_kubeconfigs([path]).connection(context)


def read_kubeconfigs(paths: Sequence[Path]) -> Kubeconfig:
    """Read kubeconfigs as one: what stands in several comes from the first. Raises KubeconfigError."""
    entries: dict[tuple[str, str], Entry] = {}
    current = ""
    for path in paths:
        config = _read(path)
        current = current or config.get("current-context") or ""
        for entry in _entries_of(path, config):
            entries.setdefault((entry.kind, entry.name), entry)
    return Kubeconfig(tuple(paths), str(current), entries)


def _read(path: Path) -> Json:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KubeconfigError(f"{path}: cannot be read as a kubeconfig: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise KubeconfigError(f"{path}: cannot be read as a kubeconfig: {error}") from error
    except yaml.YAMLError as error:
        # The parser's own message quotes the line, which may hold a token.
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        said = getattr(error, "problem", None) or "not YAML"
        raise KubeconfigError(f"{path}: cannot be read as a kubeconfig: {said}{where}") from None
    if config is None:
        return {}  # an empty file is an empty kubeconfig
    if not isinstance(config, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig: its top is not a map")
    return config


def _entries_of(path: Path, config: Json) -> list[Entry]:
    found: dict[tuple[str, str], Entry] = {}
    for kind in _KINDS:
        listed: Any = config.get(f"{kind}s") or ()
        if not isinstance(listed, list | tuple):
            raise KubeconfigError(f"{path}: {kind}s: expected a list of entries with name and {kind}")
        for item in listed:
            body: Any = (item.get(kind) or {}) if isinstance(item, dict) else None
            if not isinstance(body, dict):
                raise KubeconfigError(f"{path}: {kind}s: each entry must be a map with name and {kind}")
            name = str(item.get("name") or "")
            if (kind, name) in found:
                raise KubeconfigError(f'{path}: {kind}s: duplicate name "{name}": leave one of them')
            found[kind, name] = Entry(kind, name, path, body)
    return list(found.values())


def _connection(cluster: Entry, user: User, namespace: str) -> Connection:
    url = cluster.text("server").rstrip("/")
    if not url.startswith(("https://", "http://")):
        raise cluster.wrong(
            "server: is missing or no URL: write the server's URL, such as https://10.0.0.1:6443"
        )
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise cluster.wrong("server: holds a password: API servers take no basic auth: take it out")
    proxy = cluster.text("proxy-url")
    if proxy and not proxy.startswith(("http://", "https://")):
        scheme = proxy.partition("://")[0] if "://" in proxy else "none"
        raise cluster.wrong(
            f"proxy-url: scheme {scheme} is not supported: name a proxy by http:// or https://"
        )
    authority = cluster.pem("certificate-authority")
    insecure = bool(cluster.body.get("insecure-skip-tls-verify"))
    if insecure and authority:
        raise cluster.wrong(
            "specifying a root certificates file with the insecure flag is not allowed: "
            "drop certificate-authority or insecure-skip-tls-verify"
        )
    return Connection(
        url=url,
        token=user.token,
        authority=authority,
        certificate=user.certificate,
        key=user.key,
        files=PemFiles(cluster.pem_file("certificate-authority"), user.certificate_file, user.key_file),
        verify=not insecure,
        token_file=user.token_file,
        plugin=user.plugin,
        impersonate=user.impersonate,
        server_name=cluster.text("tls-server-name"),
        proxy=proxy,
        namespace=namespace or "default",
    )
