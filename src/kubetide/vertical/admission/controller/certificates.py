"""Certificates of the webhook: given as files, or created here and renewed before they expire.

Needs the extra ``kubetide[tls]`` where they are made.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kubetide.ports.errors import KubetideError
from kubetide.units.time import Instant
from kubetide.vertical.admission.settings import Settings

if TYPE_CHECKING:
    from kubetide.serving.certificates import Authority

_AUTHORITY_LIFE: Final = timedelta(days=365)
_SERVER_LIFE: Final = timedelta(days=30)
_EARLY: Final = timedelta(hours=1)
"""How long before now a certificate begins: clocks of machines differ."""

_VERSIONS = {"": ssl.TLSVersion.TLSv1_2, "tls1_2": ssl.TLSVersion.TLSv1_2, "tls1_3": ssl.TLSVersion.TLSv1_3}


class CertificateError(KubetideError):
    """Unreadable or unusable certificates; the text names the file and the fix."""


class Pems(NamedTuple):
    """PEM: the CA certificates that clients must trust, the server's certificate, its key.

    ``bundle`` is empty where somebody else registers the webhook.
    """

    bundle: bytes
    certificate: bytes
    key: bytes


class Certificates(Protocol):
    """A source of the server's certificate."""

    def current(self, now: Instant) -> Pems:
        """Return the certificates to use from now on; the same ones while they are valid."""
        ...


class Given:
    """Certificates in files, read again on each call."""

    def __init__(self, settings: Settings) -> None:
        self._authority = Path(settings.client_ca_file)
        self._certificate = Path(settings.tls_cert_file)
        self._key = Path(settings.tls_private_key)
        self._registers = settings.register_webhook

    def exist(self) -> bool:
        """Return whether any of the files exists."""
        return any(path.exists() for path in (self._authority, self._certificate, self._key))

    def current(self, now: Instant) -> Pems:  # noqa: ARG002  # the files say how long they are good
        """Return the certificates in the files. Raises: CertificateError."""
        return Pems(
            self._read("client-ca-file", self._authority) if self._registers else b"",
            self._read("tls-cert-file", self._certificate),
            self._read("tls-private-key", self._key),
        )

    def _read(self, flag: str, path: Path) -> bytes:
        needs = "all three files" if self._registers else "certificate and key"
        try:
            found = path.read_bytes()
        except OSError as error:
            raise CertificateError(f"--{flag}={path}: {error.strerror}; give {needs}") from error
        if not found:
            # Somebody may just be writing it.
            raise CertificateError(f"--{flag}={path}: the file is empty; give {needs}")
        return found


class Made:
    """Certificates of a CA of this process; its key is never written to disk.

    The server's certificate is renewed after two thirds of its 30 days. The authority is replaced after half of
    its year; until the old one has ended, the bundle for clients holds both.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = tuple(hosts)
        self._authorities: list[tuple[Authority, datetime]] = []
        self._pems: Pems | None = None
        self._renew_at = datetime.min.replace(tzinfo=UTC)

    def current(self, now: Instant) -> Pems:
        """Return the certificates, renewed if they are due."""
        moment = datetime.fromtimestamp(now // 1_000_000_000, UTC)
        if self._pems is None or moment >= self._renew_at:
            self._renew(moment)
        assert self._pems is not None
        return self._pems

    def _renew(self, now: datetime) -> None:
        from kubetide.serving.certificates import Authority  # noqa: PLC0415  # an extra, needed only here

        known = [one for one in self._authorities if one[1] > now]
        self._authorities = list(known)
        if not known or now >= known[-1][1] - _AUTHORITY_LIFE / 2:
            end = now + _AUTHORITY_LIFE
            self._authorities.append((Authority(now - _EARLY, end), end))
        # An authority signs from the renewal after the one that put it into the bundle.
        signer, _ = (known or self._authorities)[-1]
        pair = signer.server(self._hosts, end=now + _SERVER_LIFE)
        bundle = b"".join(authority.certificate for authority, _ in self._authorities)
        self._pems = Pems(bundle, pair.certificate, pair.key)
        self._renew_at = now + _SERVER_LIFE * 2 / 3


def server_context(settings: Settings) -> ssl.SSLContext:
    """Return the listener's TLS context, without a certificate yet. Raises: CertificateError for unknown ciphers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[settings.min_tls_version]
    # Those of TLS 1.3 cannot be chosen, and all of them are always there.
    names = [name for name in re.split(r"[,:\s]+", settings.tls_ciphers) if name and not _is_of_1_3(name)]
    if names:
        try:
            context.set_ciphers(":".join(map(openssl_name, names)))
        except ssl.SSLError as error:
            raise CertificateError(
                f"--tls-ciphers={settings.tls_ciphers}: no cipher that can be used"
            ) from error
    return context


def _is_of_1_3(name: str) -> bool:
    return name.startswith("TLS_") and "_WITH_" not in name


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a TLS cipher suite, which upstream's flag names by the standard."""
    if not name.startswith("TLS_") or "_WITH_" not in name:
        return name
    exchange, _, rest = name.removeprefix("TLS_").partition("_WITH_")
    if rest.startswith("CHACHA20_POLY1305"):
        return f"{exchange.replace('_', '-')}-CHACHA20-POLY1305"
    parts = rest.split("_")
    cipher = "".join(parts[:2]) if parts[0] == "AES" else parts[0]
    tail = [part for part in parts[2:] if part != "CBC"]
    prefix = "" if exchange == "RSA" else f"{exchange.replace('_', '-')}-"
    return prefix + "-".join([cipher, *tail])


def check(pems: Pems) -> None:
    """Raise CertificateError where certificate and key cannot be used."""
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pems)


def load(context: ssl.SSLContext, pems: Pems) -> None:
    """Use a certificate for connections from now on; a context keeps its old one if that fails.

    Raises: CertificateError.
    """
    check(pems)
    _load(context, pems)


def _load(context: ssl.SSLContext, pems: Pems) -> None:
    from kubetide.serving.certificates import KeyPair, load_pair  # noqa: PLC0415  # an extra

    try:
        load_pair(context, KeyPair(pems.certificate, pems.key))
    except ssl.SSLError as error:
        raise CertificateError(
            f"--tls-cert-file and --tls-private-key do not fit together: {error.reason}"
        ) from error
