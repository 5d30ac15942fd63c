"""Certificates made here: an authority that lives as long as its process, and what it signs.

Needs the extra ``kubetide[tls]``. Those of an embedded cluster are valid from 2000 to 2100, as its time is not the
machine's; what ends their use is that the key of the authority is never written down.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_FROM = datetime(2000, 1, 1, tzinfo=UTC)
_UNTIL = datetime(2100, 1, 1, tzinfo=UTC)


class KeyPair(NamedTuple):
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates; its key lives as long as the object.

    Args:
        begin, end: When it, and what it signs by default, becomes valid and ceases to be.
    """

    def __init__(self, begin: datetime = _FROM, end: datetime = _UNTIL) -> None:
        self._begin, self._end = begin, end
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubetide-ca")])
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        """PEM, for clients to trust."""

    def server(self, hosts: Sequence[str], *, end: datetime | None = None) -> KeyPair:
        """Return a server certificate for names and addresses."""
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubetide")])
        return self._signed(
            subject, ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names), end=end
        )

    def client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """Return a client certificate: the common name is the user, the organizations are the groups."""
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
                x509.NameAttribute(NameOID.COMMON_NAME, user),
            ]
        )
        return self._signed(subject, ExtendedKeyUsageOID.CLIENT_AUTH)

    def server_context(self, hosts: Sequence[str]) -> ssl.SSLContext:
        """Return the context of a listener that asks for client certificates and takes none too."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_verify_locations(cadata=self.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        load_pair(context, self.server(hosts))
        return context

    def _signed(
        self,
        subject: x509.Name,
        purpose: x509.ObjectIdentifier,
        *extensions: x509.ExtensionType,
        end: datetime | None = None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, key.public_key(), end)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, end: datetime | None = None
    ) -> x509.CertificateBuilder:
        authority = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._begin)
            .not_valid_after(end or self._end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), critical=False)
        )


def load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Load a certificate and its key, which ``ssl`` reads from a file only; it is gone at once."""
    descriptor, name = tempfile.mkstemp(suffix=".pem")  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pair.key + pair.certificate)
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()
